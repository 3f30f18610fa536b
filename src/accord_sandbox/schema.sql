-- Timestamps are seconds since the epoch; identifiers come from one sequence for the whole server (meta.last_id).
CREATE TABLE meta (key TEXT PRIMARY KEY, value) WITHOUT ROWID;
CREATE TABLE users (
    id INTEGER PRIMARY KEY,
    login TEXT NOT NULL UNIQUE COLLATE NOCASE,
    type TEXT NOT NULL CHECK (type IN ('User', 'Bot', 'Organization')),
    created_at REAL NOT NULL
);
CREATE TABLE tokens (
    token TEXT PRIMARY KEY,
    user_id INTEGER NOT NULL REFERENCES users (id),
    kind TEXT NOT NULL CHECK (kind IN ('user', 'fine-grained', 'installation')),
    permissions TEXT NOT NULL,  -- JSON object; unused for kind 'user'
    repositories TEXT           -- JSON array of full names; NULL means all
) WITHOUT ROWID;
CREATE TABLE repositories (
    id INTEGER PRIMARY KEY,
    owner_id INTEGER NOT NULL REFERENCES users (id),
    full_name TEXT NOT NULL UNIQUE COLLATE NOCASE,
    description TEXT,
    private INTEGER NOT NULL DEFAULT 0,
    archived INTEGER NOT NULL DEFAULT 0,
    has_issues INTEGER NOT NULL DEFAULT 1,
    last_number INTEGER NOT NULL DEFAULT 0,
    default_branch TEXT NOT NULL DEFAULT 'main',
    may_create_pulls INTEGER NOT NULL DEFAULT 1,  -- "Allow GitHub Actions to create and approve pull requests"
    workflow_permissions TEXT NOT NULL DEFAULT 'read' CHECK (workflow_permissions IN ('read', 'write')),
    created_at REAL NOT NULL
);
CREATE TABLE actions_values (
    repository_id INTEGER NOT NULL REFERENCES repositories (id),
    scope TEXT NOT NULL,        -- 'repository', 'organization', or 'environment NAME'
    kind TEXT NOT NULL CHECK (kind IN ('environment', 'secret', 'variable')),
    name TEXT NOT NULL,
    value TEXT NOT NULL,        -- of a variable; the sandbox knows secrets by name only
    created_at REAL NOT NULL,
    PRIMARY KEY (repository_id, scope, kind, name)
) WITHOUT ROWID;
CREATE TABLE rulesets (
    id INTEGER PRIMARY KEY,
    repository_id INTEGER NOT NULL REFERENCES repositories (id),
    branches TEXT NOT NULL,     -- JSON array of patterns
    rules TEXT NOT NULL         -- JSON array of rule types
);
CREATE TABLE collaborators (
    repository_id INTEGER NOT NULL REFERENCES repositories (id),
    user_id INTEGER NOT NULL REFERENCES users (id),
    role TEXT NOT NULL CHECK (role IN ('read', 'triage', 'write', 'maintain', 'admin')),
    PRIMARY KEY (repository_id, user_id)
) WITHOUT ROWID;
CREATE TABLE labels (
    id INTEGER PRIMARY KEY,
    repository_id INTEGER NOT NULL REFERENCES repositories (id),
    name TEXT NOT NULL,
    folded TEXT NOT NULL,       -- the name case-folded: GitHub's label names ignore case
    color TEXT NOT NULL,
    description TEXT,
    is_default INTEGER NOT NULL,
    UNIQUE (repository_id, folded)
);
CREATE TABLE issues (
    id INTEGER PRIMARY KEY,
    repository_id INTEGER NOT NULL REFERENCES repositories (id),
    number INTEGER NOT NULL,
    is_pull INTEGER NOT NULL DEFAULT 0,
    title TEXT NOT NULL,
    body TEXT,
    title_words TEXT NOT NULL,  -- what search compares: ' word word '
    body_words TEXT NOT NULL,
    state TEXT NOT NULL DEFAULT 'open' CHECK (state IN ('open', 'closed')),
    state_reason TEXT,
    author_id INTEGER NOT NULL REFERENCES users (id),
    created_at REAL NOT NULL,
    updated_at REAL NOT NULL,
    closed_at REAL,
    closed_by_id INTEGER REFERENCES users (id),
    type TEXT,                  -- its name, such as Bug
    milestone_id INTEGER REFERENCES milestones (id),
    locked INTEGER NOT NULL DEFAULT 0,
    UNIQUE (repository_id, number)
);
CREATE INDEX issues_by_creation ON issues (repository_id, created_at, id);
CREATE TABLE issue_labels (
    issue_id INTEGER NOT NULL REFERENCES issues (id),
    label_id INTEGER NOT NULL REFERENCES labels (id),
    PRIMARY KEY (issue_id, label_id)
);
CREATE INDEX issue_labels_by_label ON issue_labels (label_id);
CREATE TABLE assignees (
    issue_id INTEGER NOT NULL REFERENCES issues (id),
    user_id INTEGER NOT NULL REFERENCES users (id),
    PRIMARY KEY (issue_id, user_id)
);
CREATE TABLE comments (
    id INTEGER PRIMARY KEY,
    issue_id INTEGER NOT NULL REFERENCES issues (id),
    author_id INTEGER NOT NULL REFERENCES users (id),
    body TEXT NOT NULL,
    created_at REAL NOT NULL,
    updated_at REAL NOT NULL
);
CREATE INDEX comments_by_issue ON comments (issue_id, created_at, id);
CREATE TABLE reactions (
    id INTEGER PRIMARY KEY,
    comment_id INTEGER NOT NULL REFERENCES comments (id),
    user_id INTEGER NOT NULL REFERENCES users (id),
    content TEXT NOT NULL,
    created_at REAL NOT NULL,
    UNIQUE (comment_id, user_id, content)
);
CREATE TABLE dependencies (
    blocked_id INTEGER NOT NULL REFERENCES issues (id),
    blocker_id INTEGER NOT NULL REFERENCES issues (id),
    PRIMARY KEY (blocked_id, blocker_id)
);
CREATE INDEX dependencies_by_blocker ON dependencies (blocker_id);
CREATE TABLE sub_issues (
    parent_id INTEGER NOT NULL REFERENCES issues (id),
    child_id INTEGER NOT NULL UNIQUE REFERENCES issues (id)
);
CREATE INDEX sub_issues_by_parent ON sub_issues (parent_id);
CREATE TABLE milestones (
    id INTEGER PRIMARY KEY,
    repository_id INTEGER NOT NULL REFERENCES repositories (id),
    number INTEGER NOT NULL,
    title TEXT NOT NULL,
    description TEXT,
    state TEXT NOT NULL,
    creator_id INTEGER NOT NULL REFERENCES users (id),
    created_at REAL NOT NULL,
    UNIQUE (repository_id, number)
);
CREATE TABLE events (
    id INTEGER PRIMARY KEY,
    issue_id INTEGER NOT NULL REFERENCES issues (id),
    event TEXT NOT NULL,
    actor_id INTEGER NOT NULL REFERENCES users (id),
    detail TEXT NOT NULL,       -- JSON object: what GitHub adds to this kind of event
    created_at REAL NOT NULL
);
CREATE TABLE edits (          -- of the text of an issue or pull request
    issue_id INTEGER NOT NULL REFERENCES issues (id),
    editor_id INTEGER NOT NULL REFERENCES users (id),
    edited_at REAL NOT NULL
);
CREATE INDEX edits_by_issue ON edits (issue_id);
CREATE INDEX events_by_issue ON events (issue_id, created_at, id);
CREATE TABLE protections (
    repository_id INTEGER NOT NULL REFERENCES repositories (id),
    branch TEXT NOT NULL,
    rules TEXT NOT NULL,        -- JSON object in the shape of GitHub's PUT …/protection
    PRIMARY KEY (repository_id, branch)
) WITHOUT ROWID;
CREATE TABLE pulls (
    issue_id INTEGER PRIMARY KEY REFERENCES issues (id),
    head_ref TEXT NOT NULL,     -- a branch of the same repository, or of its fork
    fork_id INTEGER REFERENCES repositories (id),
    head_sha TEXT NOT NULL,
    base_ref TEXT NOT NULL,
    base_sha TEXT NOT NULL,     -- the tip of the base when the head last moved; what the diff compares with
    draft INTEGER NOT NULL DEFAULT 0,
    merged_at REAL,
    merged_by_id INTEGER REFERENCES users (id),
    merge_sha TEXT
);
CREATE TABLE reviews (
    id INTEGER PRIMARY KEY,
    issue_id INTEGER NOT NULL REFERENCES issues (id),
    author_id INTEGER NOT NULL REFERENCES users (id),
    state TEXT NOT NULL CHECK (state IN ('PENDING', 'COMMENTED', 'APPROVED', 'CHANGES_REQUESTED', 'DISMISSED')),
    body TEXT NOT NULL,
    commit_id TEXT NOT NULL,
    submitted_at REAL,
    dismissal TEXT              -- why it was dismissed
);
CREATE INDEX reviews_by_issue ON reviews (issue_id, id);
CREATE TABLE review_comments (
    id INTEGER PRIMARY KEY,
    review_id INTEGER NOT NULL REFERENCES reviews (id),
    issue_id INTEGER NOT NULL REFERENCES issues (id),
    author_id INTEGER NOT NULL REFERENCES users (id),
    in_reply_to_id INTEGER,
    body TEXT NOT NULL,
    path TEXT NOT NULL,
    subject_type TEXT NOT NULL CHECK (subject_type IN ('line', 'file')),
    side TEXT NOT NULL,
    line INTEGER,               -- NULL: outdated, or on the whole file
    position INTEGER,
    original_line INTEGER,
    original_position INTEGER,
    commit_id TEXT NOT NULL,
    original_commit_id TEXT NOT NULL,
    diff_hunk TEXT NOT NULL,
    minimized TEXT,             -- why it was hidden; NULL: it was not
    resolver_id INTEGER REFERENCES users (id), -- of the thread, in its first comment
    created_at REAL NOT NULL,
    updated_at REAL NOT NULL
);
CREATE INDEX review_comments_by_issue ON review_comments (issue_id, id);
CREATE INDEX review_comments_by_review ON review_comments (review_id, id);
CREATE TABLE check_runs (
    id INTEGER PRIMARY KEY,
    repository_id INTEGER NOT NULL REFERENCES repositories (id),
    app_id INTEGER NOT NULL REFERENCES users (id),
    head_sha TEXT NOT NULL,
    name TEXT NOT NULL,
    status TEXT NOT NULL,
    conclusion TEXT,
    details_url TEXT,
    external_id TEXT,
    title TEXT,
    summary TEXT,
    text TEXT,
    started_at REAL,
    completed_at REAL,
    run_id INTEGER REFERENCES workflow_runs (id), -- of a job
    log TEXT                    -- NULL: deleted by now
);
CREATE INDEX check_runs_by_commit ON check_runs (repository_id, head_sha, id);
CREATE TABLE statuses (
    id INTEGER PRIMARY KEY,
    repository_id INTEGER NOT NULL REFERENCES repositories (id),
    creator_id INTEGER NOT NULL REFERENCES users (id),
    sha TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('error', 'failure', 'pending', 'success')),
    context TEXT NOT NULL,
    description TEXT,
    target_url TEXT,
    created_at REAL NOT NULL
);
CREATE INDEX statuses_by_commit ON statuses (repository_id, sha, id);
CREATE TABLE artifacts (
    id INTEGER PRIMARY KEY,
    repository_id INTEGER NOT NULL REFERENCES repositories (id),
    run_id INTEGER NOT NULL,
    name TEXT NOT NULL,
    digest TEXT NOT NULL,       -- SHA-256 of the archive, hexadecimal
    content BLOB NOT NULL,      -- the archive, a zip file
    created_at REAL NOT NULL,
    expires_at REAL NOT NULL,
    UNIQUE (repository_id, run_id, name)
);
CREATE TABLE resolved_threads (
    comment_id INTEGER PRIMARY KEY REFERENCES review_comments (id), -- the first comment of the thread
    user_id INTEGER NOT NULL REFERENCES users (id)
);
CREATE TABLE workflow_runs (
    id INTEGER PRIMARY KEY,
    repository_id INTEGER NOT NULL REFERENCES repositories (id),
    name TEXT NOT NULL,
    path TEXT NOT NULL,
    event TEXT NOT NULL,
    status TEXT NOT NULL,
    conclusion TEXT,
    head_sha TEXT NOT NULL,
    head_branch TEXT NOT NULL,
    title TEXT NOT NULL DEFAULT '', -- what the workflow's run-name makes of the inputs; empty for its name
    inputs TEXT,                -- JSON object; NULL: not started by hand
    actor_id INTEGER REFERENCES users (id),             -- who caused it; NULL for runs of the seed and the controls
    triggering_actor_id INTEGER REFERENCES users (id),  -- who started its last attempt
    attempt INTEGER NOT NULL DEFAULT 1,
    created_at REAL NOT NULL
);
CREATE INDEX workflow_runs_by_commit ON workflow_runs (repository_id, head_sha, id);

-- Rows with what most questions about them need: the author's login, the repository's name, the issue of a part.
CREATE VIEW items AS
    SELECT issues.*, users.login, repositories.full_name FROM issues
    JOIN users ON users.id = author_id JOIN repositories ON repositories.id = repository_id;
CREATE VIEW pull_items AS
    SELECT pulls.*, items.*, repositories.owner_id, repositories.private FROM pulls
    JOIN items ON items.id = issue_id JOIN repositories ON repositories.id = repository_id;
CREATE VIEW item_comments AS
    SELECT comments.*, users.login, items.number, items.is_pull, items.repository_id, items.full_name FROM comments
    JOIN items ON items.id = issue_id JOIN users ON users.id = comments.author_id;
CREATE VIEW public_review_comments AS
    SELECT review_comments.* FROM review_comments JOIN reviews ON reviews.id = review_id
    WHERE reviews.state != 'PENDING';
