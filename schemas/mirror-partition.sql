-- More tables of the SQLite mirror, for each partition that a release has besides the countries: $table is `network`, `kind` or `label`, and
-- $subject what identifies a record. The table $table has the records: for networks, see mirror-networks.sql; for rows of values, a
-- number for each different row in the column $subject, and one column for each column of values: TEXT, or INTEGER for those that are true or false (1, 0).

-- Ranges as in ipv4_range. Either a record is named or a reason: `unannounced`, `unlabeled`, or the scheme (6to4, nat64, teredo)
-- whose embedded IPv4 address answers.
CREATE TABLE ipv4_$table (
  first  INTEGER PRIMARY KEY,
  last   INTEGER NOT NULL,
  $subject INTEGER REFERENCES $table ($subject),
  reason TEXT
) STRICT;

CREATE TABLE ipv6_$table (
  first  BLOB PRIMARY KEY,
  last   BLOB NOT NULL,
  $subject INTEGER REFERENCES $table ($subject),
  reason TEXT
) STRICT, WITHOUT ROWID;
