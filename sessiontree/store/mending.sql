-- The statements of check and repair, as in queries.sql. A check gives a row for each problem:
-- the conversation, the message (either may be null) and what is wrong.

-- name: check_roles
SELECT conversation_id, id, 'its role is ' || quote(role) FROM message
WHERE role NOT IN ('system', 'user', 'assistant', 'tool', 'mark')

-- name: check_contents
SELECT conversation_id, id,
       CASE WHEN content IS NULL THEN 'it has no content' ELSE 'it has a content and a blob' END
FROM message WHERE (content IS NULL) = (blob_id IS NULL)

-- name: check_moves
-- Undo must find a place to go back to, and the move before it.
SELECT v.conversation_id, NULL, 'move ' || v.id || ', from ' || coalesce(v.from_id, 'none') ||
       ' to ' || coalesce(v.to_id, 'none') || ' after move ' || coalesce(v.prev_id, 'none') ||
       ', does not lead from boundary to boundary, or after no move that there is'
FROM move v
LEFT JOIN message f ON f.id = v.from_id AND f.conversation_id = v.conversation_id
LEFT JOIN message t ON t.id = v.to_id AND t.conversation_id = v.conversation_id
LEFT JOIN move p ON p.conversation_id = v.conversation_id AND p.id = v.prev_id AND p.id < v.id
WHERE (v.from_id IS NOT NULL AND coalesce(f.open_calls, 1) <> 0)
   OR (v.to_id IS NOT NULL AND coalesce(t.open_calls, 1) <> 0)
   OR (v.prev_id IS NOT NULL AND p.id IS NULL)

-- name: check_current_moves
SELECT c.id, NULL, 'the move that undo would take back, ' || c.move_id || ', is not there'
FROM conversation c LEFT JOIN move v ON v.conversation_id = c.id AND v.id = c.move_id
WHERE c.move_id IS NOT NULL AND v.id IS NULL

-- name: check_drafts
SELECT DISTINCT d.conversation_id, d.parent_id, 'what was in flight follows no boundary'
FROM draft d LEFT JOIN message m ON m.id = d.parent_id AND m.conversation_id = d.conversation_id
WHERE d.parent_id IS NOT NULL AND coalesce(m.open_calls, 1) <> 0

-- name: check_references
SELECT m.conversation_id, m.id, 'it speaks of message ' || m.ref_id || ', which is not there'
FROM message m LEFT JOIN message r ON r.id = m.ref_id AND r.conversation_id = m.conversation_id
WHERE m.ref_id IS NOT NULL AND r.id IS NULL

-- name: check_sequences
-- An id must not be given twice.
SELECT NULL, NULL, 'the count of messages or conversations is behind the largest id'
WHERE (SELECT coalesce(max(id), 0) FROM message)
      > (SELECT coalesce(max(seq), 0) FROM sqlite_sequence WHERE name = 'message')
   OR (SELECT coalesce(max(id), 0) FROM conversation)
      > (SELECT coalesce(max(seq), 0) FROM sqlite_sequence WHERE name = 'conversation')

-- name: check_conversations
-- Rows of a conversation that is not there.
SELECT DISTINCT t.conversation_id, NULL, 'it is not there, and has ' || t.what
FROM (SELECT conversation_id, 'messages' AS what FROM message
      UNION ALL SELECT conversation_id, 'checkpoints' FROM checkpoint
      UNION ALL SELECT conversation_id, 'moves' FROM move
      UNION ALL SELECT conversation_id, 'messages in flight' FROM draft) t
WHERE NOT EXISTS (SELECT 1 FROM conversation c WHERE c.id = t.conversation_id)

-- name: missing_conversations
-- And when their first message was saved.
SELECT t.conversation_id,
       (SELECT min(m.created_at) FROM message m WHERE m.conversation_id = t.conversation_id)
FROM (SELECT conversation_id FROM message UNION SELECT conversation_id FROM checkpoint
      UNION SELECT conversation_id FROM move UNION SELECT conversation_id FROM draft) t
WHERE NOT EXISTS (SELECT 1 FROM conversation c WHERE c.id = t.conversation_id)

-- name: restore_conversation
INSERT INTO conversation (id, owner, title, head_id, move_id, created_at, updated_at)
VALUES (:conversation, :owner, :title,
        (SELECT to_id FROM move WHERE conversation_id = :conversation ORDER BY id DESC LIMIT 1),
        (SELECT max(id) FROM move WHERE conversation_id = :conversation), :created_at, :now)

-- name: make_sequences
INSERT INTO sqlite_sequence (name, seq)
SELECT t.name, 0 FROM (SELECT 'message' AS name UNION ALL SELECT 'conversation') t
WHERE NOT EXISTS (SELECT 1 FROM sqlite_sequence s WHERE s.name = t.name)

-- name: mend_sequences
UPDATE sqlite_sequence SET seq = max(seq, CASE name
    WHEN 'message' THEN (SELECT coalesce(max(id), 0) FROM message)
    WHEN 'conversation' THEN (SELECT coalesce(max(id), 0) FROM conversation)
    ELSE seq END)

-- name: set_digest
UPDATE blob SET sha256 = :sha256 WHERE id = :blob

-- name: messages_of_blob
SELECT conversation_id, id FROM message WHERE blob_id = :blob

-- name: is_message
SELECT 1 FROM message WHERE id = :id

-- name: bones
SELECT id, parent_id, depth, open_calls, role, system_id, ref_id
FROM message WHERE conversation_id = :conversation ORDER BY id

-- name: mend_contents
-- Of two contents the one in the row was kept to the byte.
UPDATE message SET blob_id = NULL
WHERE conversation_id = :conversation AND content IS NOT NULL AND blob_id IS NOT NULL
RETURNING id

-- name: mend_message
UPDATE message SET parent_id = :parent_id, role = :role, format = :format, depth = :depth,
       open_calls = :open_calls, tokens = :tokens, meta = :meta, system_id = :system_id,
       content = CASE WHEN :lost THEN :content ELSE content END,
       blob_id = CASE WHEN :lost THEN NULL ELSE blob_id END
WHERE conversation_id = :conversation AND id = :id

-- name: mend_head
UPDATE conversation SET head_id = :head WHERE id = :conversation

-- name: mend_moves
SELECT id, prev_id, from_id, to_id FROM move WHERE conversation_id = :conversation ORDER BY id

-- name: delete_move
DELETE FROM move WHERE conversation_id = :conversation AND id = :move

-- name: mend_move
UPDATE move SET prev_id = :before WHERE conversation_id = :conversation AND id = :move

-- name: mend_current_move
UPDATE conversation SET move_id = :move WHERE id = :conversation

-- name: delete_checkpoint
DELETE FROM checkpoint WHERE conversation_id = :conversation AND label = :label

-- name: mend_checkpoint
UPDATE checkpoint SET message_id = :id WHERE conversation_id = :conversation AND label = :label

-- name: draft_parents
SELECT DISTINCT turn, parent_id FROM draft WHERE conversation_id = :conversation

-- name: mend_draft
UPDATE draft SET parent_id = :parent WHERE conversation_id = :conversation AND turn = :turn

-- name: draft_places
SELECT turn, position FROM draft WHERE conversation_id = :conversation ORDER BY turn, position

-- name: set_drafted
UPDATE draft SET format = :format, usage = NULL, model = NULL, key = NULL, meta = :meta, content = :content
WHERE conversation_id = :conversation AND turn = :turn AND position = :position

-- name: whole_message
-- All of its row: a page of it that is damaged makes this fail.
SELECT * FROM message WHERE id = :id

-- name: raise_sequence
UPDATE sqlite_sequence SET seq = max(seq, :least) WHERE name = :name

-- name: conversation_of
SELECT conversation_id FROM message WHERE id = :id

-- name: take_out_of_blob
UPDATE message SET content = :content, blob_id = NULL WHERE blob_id = :blob

-- name: has_messages
SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'message'
