SELECT * FROM camera1 A, camera2 D WINDOW (A, D)
WHERE A.x = D.x
