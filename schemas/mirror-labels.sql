-- More tables of the SQLite mirror, only in a release with labels. The table `label` has a number for each different row of values,
-- in `label`, and one column of TEXT for each column of the user's files.

-- Ranges as in ipv4_range, but of labels. Either a label is named or a reason: `unlabeled`, or the scheme (6to4, nat64,
-- teredo) whose embedded IPv4 address answers.
CREATE TABLE ipv4_label (
  first  INTEGER PRIMARY KEY,
  last   INTEGER NOT NULL,
  label  INTEGER REFERENCES label (label),
  reason TEXT
) STRICT;

CREATE TABLE ipv6_label (
  first  BLOB PRIMARY KEY,
  last   BLOB NOT NULL,
  label  INTEGER REFERENCES label (label),
  reason TEXT
) STRICT, WITHOUT ROWID;
