SELECT A.speed FROM camera1 A, camera2 B, camera3 C
PATH (A, NOT C, B) WITHIN (1 MINUTE) OR WINDOW (A, B) = 5 SECONDS
WHERE A.obj_id = B.obj_id AND A.obj_id = C.obj_id
