SELECT A.obj_id
FROM camera1 A, camera2 B, camera3 Gate
WINDOW (A, B) = 5 s AND WINDOW (B, Gat) = 5 s
