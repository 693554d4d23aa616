SELECT 1 FROM camera1 A, badge B WINDOW = 5 s WHERE A.obj_id = B.code
