-- The records of the partition of networks in the SQLite mirror: who announces the addresses.
CREATE TABLE network (
  asn  INTEGER PRIMARY KEY,        -- AS number, 1 to 2^32 - 1
  name TEXT                        -- null if no source has one
) STRICT;
