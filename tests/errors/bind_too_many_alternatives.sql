SELECT A.obj_id FROM camera1 A, camera2 B
WHERE A.obj_id = B.obj_id
WINDOW (A, B) = 5 s
  AND (WINDOW (A, B) = 0 s OR DWINDOW (A, B) = 9 s)
  AND (WINDOW (A, B) = 1 s OR DWINDOW (A, B) = 10 s)
  AND (WINDOW (A, B) = 2 s OR DWINDOW (A, B) = 11 s)
  AND (WINDOW (A, B) = 3 s OR DWINDOW (A, B) = 12 s)
  AND (WINDOW (A, B) = 4 s OR DWINDOW (A, B) = 13 s)
  AND (WINDOW (A, B) = 5 s OR DWINDOW (A, B) = 14 s)
  AND (WINDOW (A, B) = 6 s OR DWINDOW (A, B) = 15 s)
