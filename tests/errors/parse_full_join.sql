SELECT A.obj_id FROM camera1 A
FULL JOIN camera2 B ON A.obj_id = B.obj_id
WINDOW = 5 SECONDS
