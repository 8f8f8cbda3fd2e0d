-- Calls that were not carried out yet, by their parent: they are deleted with it. Keys begin with `ST/{parent}/`.
CREATE INDEX message_child_start ON message (key) WHERE key >= 'ST/' AND key < 'ST0';
