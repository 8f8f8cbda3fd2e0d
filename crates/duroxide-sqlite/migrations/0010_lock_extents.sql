-- Which messages a lock holds, without special values. Either every message that was visible when the claim was made
-- (`extent_at`, the time of the claim, and `extent_up_to`, the highest number it took), or those that have the lock's mark
-- (`extent_mark`). Attempts are counted when a lock ends by anything but a commit, in both cases.

-- A marked batch had counted the attempt of its messages when it was claimed.
UPDATE message SET attempt_count = max(0, attempt_count - 1)
WHERE batch IS NOT NULL
  AND EXISTS (SELECT 1 FROM instance WHERE instance.id = message.instance AND instance.batch = message.batch);
-- A single message was named by its position; it gets a mark.
UPDATE message SET batch = (SELECT -instance.batch FROM instance WHERE instance.id = message.instance)
WHERE EXISTS (SELECT 1 FROM instance WHERE instance.id = message.instance AND instance.batch < 0
    AND instance.batch_due_at = message.due_at AND instance.batch_seq = message.seq);
UPDATE instance SET batch = -batch, batch_due_at = NULL, batch_seq = NULL WHERE batch < 0 AND batch_due_at >= 0;
-- A whole mailbox held only messages that were visible at once.
UPDATE instance SET batch = NULL, batch_due_at = 0 WHERE batch < 0 AND batch_due_at = -1;
UPDATE instance SET batch_due_at = NULL, batch_seq = NULL WHERE batch > 0;

ALTER TABLE instance RENAME COLUMN batch TO extent_mark;
ALTER TABLE instance RENAME COLUMN batch_due_at TO extent_at;
ALTER TABLE instance RENAME COLUMN batch_seq TO extent_up_to;
ALTER TABLE message RENAME COLUMN batch TO mark;
CREATE INDEX message_marked ON message (instance, mark) WHERE mark IS NOT NULL;
