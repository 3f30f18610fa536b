-- Moments are seconds since the epoch; identifiers come from one sequence for the whole server (meta.last_id).
CREATE TABLE IF NOT EXISTS meta (key TEXT PRIMARY KEY, value) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS users (
    id INTEGER PRIMARY KEY,
    login TEXT NOT NULL UNIQUE COLLATE NOCASE,
    type TEXT NOT NULL CHECK (type IN ('User', 'Bot', 'Organization')),
    created_at REAL NOT NULL
);
CREATE TABLE IF NOT EXISTS tokens (
    token TEXT PRIMARY KEY,
    user_id INTEGER NOT NULL REFERENCES users (id),
    kind TEXT NOT NULL CHECK (kind IN ('user', 'fine-grained', 'installation')),
    permissions TEXT NOT NULL,  -- JSON object; unused for kind 'user'
    repositories TEXT           -- JSON array of full names; NULL means all
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS repositories (
    id INTEGER PRIMARY KEY,
    owner_id INTEGER NOT NULL REFERENCES users (id),
    full_name TEXT NOT NULL UNIQUE COLLATE NOCASE,
    description TEXT,
    private INTEGER NOT NULL,
    archived INTEGER NOT NULL,
    has_issues INTEGER NOT NULL,
    last_number INTEGER NOT NULL DEFAULT 0,
    created_at REAL NOT NULL
);
CREATE TABLE IF NOT EXISTS collaborators (
    repository_id INTEGER NOT NULL REFERENCES repositories (id),
    user_id INTEGER NOT NULL REFERENCES users (id),
    role TEXT NOT NULL CHECK (role IN ('read', 'triage', 'write', 'maintain', 'admin')),
    PRIMARY KEY (repository_id, user_id)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS labels (
    id INTEGER PRIMARY KEY,
    repository_id INTEGER NOT NULL REFERENCES repositories (id),
    name TEXT NOT NULL,
    folded TEXT NOT NULL,       -- the name case-folded: GitHub's label names ignore case
    color TEXT NOT NULL,
    description TEXT,
    is_default INTEGER NOT NULL,
    UNIQUE (repository_id, folded)
);
CREATE TABLE IF NOT EXISTS issues (
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
    locked INTEGER NOT NULL DEFAULT 0,
    lock_reason TEXT,
    UNIQUE (repository_id, number)
);
CREATE INDEX IF NOT EXISTS issues_by_creation ON issues (repository_id, created_at, id);
CREATE TABLE IF NOT EXISTS issue_labels (
    issue_id INTEGER NOT NULL REFERENCES issues (id),
    label_id INTEGER NOT NULL REFERENCES labels (id),
    PRIMARY KEY (issue_id, label_id)
);
CREATE INDEX IF NOT EXISTS issue_labels_by_label ON issue_labels (label_id);
CREATE TABLE IF NOT EXISTS assignees (
    issue_id INTEGER NOT NULL REFERENCES issues (id),
    user_id INTEGER NOT NULL REFERENCES users (id),
    PRIMARY KEY (issue_id, user_id)
);
CREATE TABLE IF NOT EXISTS comments (
    id INTEGER PRIMARY KEY,
    issue_id INTEGER NOT NULL REFERENCES issues (id),
    author_id INTEGER NOT NULL REFERENCES users (id),
    body TEXT NOT NULL,
    words TEXT NOT NULL,
    created_at REAL NOT NULL,
    updated_at REAL NOT NULL
);
CREATE INDEX IF NOT EXISTS comments_by_issue ON comments (issue_id, created_at, id);
CREATE TABLE IF NOT EXISTS dependencies (
    blocked_id INTEGER NOT NULL REFERENCES issues (id),
    blocker_id INTEGER NOT NULL REFERENCES issues (id),
    PRIMARY KEY (blocked_id, blocker_id)
);
CREATE INDEX IF NOT EXISTS dependencies_by_blocker ON dependencies (blocker_id);
CREATE TABLE IF NOT EXISTS sub_issues (
    child_id INTEGER PRIMARY KEY REFERENCES issues (id),
    parent_id INTEGER NOT NULL REFERENCES issues (id),
    position INTEGER NOT NULL
);
CREATE INDEX IF NOT EXISTS sub_issues_by_parent ON sub_issues (parent_id, position);
CREATE TABLE IF NOT EXISTS events (
    id INTEGER PRIMARY KEY,
    issue_id INTEGER NOT NULL REFERENCES issues (id),
    event TEXT NOT NULL,
    actor_id INTEGER NOT NULL REFERENCES users (id),
    detail TEXT NOT NULL,       -- JSON object: what GitHub adds to this kind of event
    created_at REAL NOT NULL
);
CREATE INDEX IF NOT EXISTS events_by_issue ON events (issue_id, created_at, id);
