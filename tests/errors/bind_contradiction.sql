SELECT A.obj_id FROM camera1 A, camera2 B
WINDOW (A, B) BETWEEN 10 s AND 20 s
  AND WINDOW (A, B) = 5 s
