SELECT A.speed FROM camera1 A FULL JOIN camera2 B ON A.obj_id = B.obj_id LEFT JOIN camera3 C ON C.speed > 1
WINDOW (A, B) = 5 SECONDS AND (WINDOW (A, C) = 1 SECOND OR WINDOW (B, C) = 1 MINUTE)
