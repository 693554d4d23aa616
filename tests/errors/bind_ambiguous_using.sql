SELECT 1 FROM camera1 A JOIN camera2 B ON A.obj_id = B.obj_id JOIN camera3 C USING (obj_id) WINDOW = 5 s
