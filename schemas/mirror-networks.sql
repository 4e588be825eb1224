-- More tables of the SQLite mirror, only in a release with networks: who announces the addresses.
CREATE TABLE network (
  asn  INTEGER PRIMARY KEY,        -- AS number, 1 to 2^32 - 1
  name TEXT                        -- null if no source has one
) STRICT;

-- Ranges as in ipv4_range, but of networks. Either an AS number is named or a reason: `unannounced`, or the scheme (6to4, nat64,
-- teredo) whose embedded IPv4 address answers.
CREATE TABLE ipv4_network (
  first  INTEGER PRIMARY KEY,
  last   INTEGER NOT NULL,
  asn    INTEGER REFERENCES network (asn),
  reason TEXT
) STRICT;

CREATE TABLE ipv6_network (
  first  BLOB PRIMARY KEY,
  last   BLOB NOT NULL,
  asn    INTEGER REFERENCES network (asn),
  reason TEXT
) STRICT, WITHOUT ROWID;
