-- The response cache: a file of its own, that may be deleted at any time. Parameters are
-- :named, times microseconds since 1970 (UTC), tokens and sizes (bytes) are counts.

-- name: schema
CREATE TABLE entry (
    key TEXT NOT NULL UNIQUE,      -- SHA-256 of the request, in hexadecimal
    kind TEXT NOT NULL CHECK (kind IN ('json', 'text', 'bytes')),
    model TEXT,
    usage TEXT,                    -- as the provider reported it, JSON
    sent INTEGER NOT NULL,         -- tokens that a hit saves
    output INTEGER NOT NULL,
    nanodollars INTEGER,           -- what a hit saves; null where it is not known
    size INTEGER NOT NULL,
    stored_at INTEGER NOT NULL,
    used_at INTEGER NOT NULL,
    expires_at INTEGER,            -- null: never
    hits INTEGER NOT NULL DEFAULT 0,
    body BLOB NOT NULL             -- last: what is long is read when it is asked for
);
CREATE INDEX entry_used ON entry (used_at, size);
CREATE INDEX entry_stored ON entry (stored_at);
CREATE INDEX entry_expires ON entry (expires_at) WHERE expires_at IS NOT NULL;

-- Which conversations an entry was stored for.
CREATE TABLE used_by (
    conversation TEXT NOT NULL,
    key TEXT NOT NULL REFERENCES entry (key) ON DELETE CASCADE,
    PRIMARY KEY (conversation, key)
) WITHOUT ROWID;
CREATE INDEX used_by_key ON used_by (key);

-- One row: what there is, and what was saved since the file was made.
CREATE TABLE total (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    hits INTEGER NOT NULL DEFAULT 0,
    misses INTEGER NOT NULL DEFAULT 0,
    entries INTEGER NOT NULL DEFAULT 0,
    bytes INTEGER NOT NULL DEFAULT 0,
    sent INTEGER NOT NULL DEFAULT 0,
    output INTEGER NOT NULL DEFAULT 0,
    nanodollars INTEGER NOT NULL DEFAULT 0,
    unpriced INTEGER NOT NULL DEFAULT 0
);
INSERT INTO total (id) VALUES (1);

-- Kept by triggers, so that no way of adding or removing can forget it.
CREATE TRIGGER entry_added AFTER INSERT ON entry BEGIN
    UPDATE total SET entries = entries + 1, bytes = bytes + new.size;
END;
CREATE TRIGGER entry_removed AFTER DELETE ON entry BEGIN
    UPDATE total SET entries = entries - 1, bytes = bytes - old.size;
END;
CREATE TRIGGER entry_replaced AFTER UPDATE OF size ON entry BEGIN
    UPDATE total SET bytes = bytes + new.size - old.size;
END;

-- name: is_empty
SELECT count(*) = 0 FROM sqlite_master

-- name: get
SELECT kind, model, usage, sent, output, nanodollars, stored_at, hits, body
FROM entry WHERE key = :key AND (expires_at IS NULL OR expires_at > :now)

-- name: use
UPDATE entry SET used_at = :now, expires_at = :expires, hits = hits + 1 WHERE key = :key

-- name: count_hit
UPDATE total SET hits = hits + 1, sent = sent + :sent, output = output + :output,
    nanodollars = nanodollars + coalesce(:nanodollars, 0),
    unpriced = unpriced + (:nanodollars IS NULL)

-- name: count_miss
UPDATE total SET misses = misses + 1

-- name: put
INSERT INTO entry (key, kind, model, usage, sent, output, nanodollars, size, stored_at, used_at,
    expires_at, body)
VALUES (:key, :kind, :model, :usage, :sent, :output, :nanodollars, :size, :now, :now, :expires, :body)
ON CONFLICT (key) DO UPDATE SET kind = excluded.kind, model = excluded.model,
    usage = excluded.usage, sent = excluded.sent, output = excluded.output,
    nanodollars = excluded.nanodollars, size = excluded.size, stored_at = excluded.stored_at,
    used_at = excluded.used_at, expires_at = excluded.expires_at, body = excluded.body

-- name: mark_used_by
INSERT INTO used_by (conversation, key) VALUES (:conversation, :key) ON CONFLICT DO NOTHING

-- name: drop_expired
DELETE FROM entry WHERE expires_at <= :now

-- name: drop_key
DELETE FROM entry WHERE key = :key

-- name: drop_conversation
DELETE FROM entry WHERE key IN (SELECT key FROM used_by WHERE conversation = :conversation)

-- name: drop_stored_before
DELETE FROM entry WHERE stored_at < :before

-- name: drop_all
DELETE FROM entry

-- name: longest_unused
SELECT rowid, size FROM entry ORDER BY used_at, size

-- name: drop_row
DELETE FROM entry WHERE rowid = ?

-- name: bytes
SELECT bytes FROM total

-- name: totals
SELECT hits, misses, entries, bytes, sent, output, nanodollars, unpriced FROM total
