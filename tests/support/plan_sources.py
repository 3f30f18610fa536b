"""Small sources of plans, in the forms of Spec Kit, spec-kitty, sessions and checklists."""

from pathlib import Path

SPEC = """## User Scenarios

### User Story 1 - Export (Priority: P1)

**Acceptance Scenarios**:

1. **Given** three contacts, **When** I export them, **Then** the file has three lines
"""
PLAN = """### Source Code (repository root)

```text
# chosen
src/
├── export/
└── cli/

tests/
└── unit/
```
"""
TASKS = """# Tasks: Export

## Format: `[ID] [P?] [Story] Description`

- **[P]**: Can run in parallel

## Phase 1: Setup

- [ ] T001 Create project structure per implementation plan
- [ ] T002 [P] Configure linting in ruff.toml
- [ ] T003 [P] Configure typing in `mypy.ini`

## Phase 2: Foundational (Blocking Prerequisites)

- [ ] T004 Model contacts in src/model.py

**Checkpoint**: Foundation ready

## Phase 3: User Story 1 - Export (Priority: P1)

**Goal**: Contacts can leave

**Independent Test**: Export and open the file

- [ ] T005 [P] [US1] Test in tests/test_csv.py
- [ ] T006 [P] [US1] Write CSV in src/csv.py
- [ ] T007 [US1] Wire it in src/cli.py

## Phase 4: User Story 2 - Print (Priority: P3)

- [ ] T008 [US2] Print in src/print.py

## Phase 5: Polish

- [ ] T009 Document it in docs/export.md
"""


CHECKLIST = """# Todo

Spec: docs/specs/export.md

- [ ] Write `src/a.py` (#12)
  - [ ] A works
  - **Verify**: Run it
  - Depends on: Refactor the base
  - Labels: priority:high
- [ ] Refactor the base class in src/base.py
  A note.
"""


SESSION = """tasks:
  - id: T-001
    goal: Write CSV
    status: completed
    acceptance_checks: ["cmd: true"]
  - id: T-002
    goal: Write vCard
    title: vCard
    status: not-started
    depends_on: [T-001]
    non_goals: [Pictures]
    acceptance_checks:
      - cmd: pytest tests/test_vcard.py
    files_expected: [src/vcard.py]
"""


WORK_PACKAGE = """---
work_package_id: {name}
title: Sort the commands
dependencies: [{dependencies}]
owned_files:
- src/{name}.py
---

# {name}

## Objectives & Success Criteria

- Commands are sorted
"""


def mission(root: Path) -> Path:
    folder = root / "kitty-specs" / "001-sort"
    (folder / "tasks").mkdir(parents=True)
    (folder / "spec.md").write_text("# Sort\n")
    (folder / "meta.json").write_text("{}")
    (folder / "tasks.md").write_text(
        "## Work Package WP01: Sort (Priority: P1)\n\n**Goal**: Show commands in order.\n"
        "**Independent Test**: Run it.\n\n### Included Subtasks\n\n- [ ] T001 Sort in `src/a.py`\n"
    )
    for name, dependencies in (("WP01", ""), ("WP02", "WP01")):
        (folder / "tasks" / f"{name}-sort.md").write_text(WORK_PACKAGE.format(name=name, dependencies=dependencies))
    return folder
