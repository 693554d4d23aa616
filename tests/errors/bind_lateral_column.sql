SELECT t.tga FROM badge A, badge B LATERAL VIEW explode(A.tags) t AS tag WINDOW = 5 SECONDS
