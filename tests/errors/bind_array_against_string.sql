SELECT 1 FROM camera1 A, badge B WINDOW = 5 s WHERE A.frame = B.tags
