SELECT A.speed FROM camera1 A, camera2 B, camera3 C PATH (A, NOT B, NOT C) WITHIN (5 SECONDS, 5 SECONDS)
WHERE A.obj_id = B.obj_id AND B.obj_id = C.obj_id
