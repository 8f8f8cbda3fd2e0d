-- An activity can be asked to stop while somebody holds it: its holder is told when it renews the lock, and whoever claims
-- the row after the lock ended does not run it again. `claimed` says whether anybody may have begun the activity; an
-- attempt count that is taken back says nothing of that.
ALTER TABLE activity ADD COLUMN claimed INTEGER NOT NULL DEFAULT 0;
ALTER TABLE activity ADD COLUMN stop_requested INTEGER NOT NULL DEFAULT 0;
UPDATE activity SET claimed = 1 WHERE attempt_count > 0 OR lock_token IS NOT NULL;

-- How many claims of an instance or activity were lost (their lease or node ended without an answer), and how many of them
-- ended their node. Claims that were lost before are not known; they count from now on.
ALTER TABLE instance ADD COLUMN lost INTEGER NOT NULL DEFAULT 0;
ALTER TABLE instance ADD COLUMN blamed INTEGER NOT NULL DEFAULT 0;
ALTER TABLE activity ADD COLUMN lost INTEGER NOT NULL DEFAULT 0;
ALTER TABLE activity ADD COLUMN blamed INTEGER NOT NULL DEFAULT 0;

-- Rows of deleted instances and pruned executions that are still to be removed. Nothing leads to them any more: the row of
-- the instance or execution is gone. A call removes them in steps (`task`); if it stops, anyone may from `remove_at` on.
CREATE TABLE removal_task (
    id        INTEGER PRIMARY KEY,
    remove_at INTEGER NOT NULL
);
CREATE INDEX removal_task_due ON removal_task (remove_at);
CREATE TABLE removal (
    id           INTEGER PRIMARY KEY,
    task         INTEGER NOT NULL,
    instance     INTEGER NOT NULL,
    -- NULL: everything of the instance.
    execution_id INTEGER
);
CREATE INDEX removal_of_task ON removal (task, id);
CREATE INDEX removal_of_execution ON removal (instance, execution_id);
