SELECT A.person, tag FROM badge A LATERAL VIEW explode(A.tags) t AS tag WHERE EXISTS (SELECT * FROM texts B WINDOW (A, B) = 5 SECONDS WHERE A.code = B.person AND tag = B.person)
