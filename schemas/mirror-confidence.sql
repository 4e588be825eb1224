-- More tables of the SQLite mirror, only in a release that was merged by evidence: ranges on which the lineages disagree.
-- A range without a row has 100 percent.
CREATE TABLE ipv4_confidence (
  first   INTEGER PRIMARY KEY REFERENCES ipv4_range (first),
  percent INTEGER NOT NULL CHECK (percent BETWEEN 0 AND 99) -- lowest share of the lineages that agree within the range
) STRICT;

CREATE TABLE ipv6_confidence (
  first   BLOB PRIMARY KEY REFERENCES ipv6_range (first),
  percent INTEGER NOT NULL CHECK (percent BETWEEN 0 AND 99)
) STRICT, WITHOUT ROWID;
