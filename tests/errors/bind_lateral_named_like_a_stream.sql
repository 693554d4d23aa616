SELECT tag FROM badge A, badge B LATERAL VIEW explode(A.tags) b AS tag WINDOW = 5 SECONDS
