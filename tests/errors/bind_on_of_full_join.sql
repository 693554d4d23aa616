SELECT A.speed FROM camera1 A FULL JOIN camera2 B USING (frame) LEFT JOIN texts C ON frame = C.person WINDOW (A, B) = 5 SECONDS AND WINDOW (A, C) = 5 SECONDS
