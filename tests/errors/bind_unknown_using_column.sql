SELECT A.obj_id FROM camera1 A JOIN camera2 B USING (obj) WINDOW = 5 s
