-- :l = '5 seconds'
-- :u = '1 second'
SELECT A.obj_id FROM camera1 A, camera2 B WINDOW (A, B) BETWEEN :l AND :u
