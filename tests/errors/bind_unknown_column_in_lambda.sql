SELECT transform(A.tags, x -> concat(x, y)) FROM badge A, badge B WINDOW = 5 s
