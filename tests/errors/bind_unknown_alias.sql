SELECT cam.obj_id FROM camera1 cam1, camera2 other WINDOW = 5 s
