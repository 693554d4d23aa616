SELECT A.obj_id FROM camera1 A, camera2 B, orders O
WINDOW (A, B) = 5 SECONDS
WHERE A.obj_id = B.obj_id AND A.obj_id = O.id
