SELECT 1 FROM camera1 A, badge B WINDOW = 5 s WHERE lower(code) = abs(A.obj_id)
