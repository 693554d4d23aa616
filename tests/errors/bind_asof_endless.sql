SELECT A.speed FROM camera1 A ASOF JOIN camera2 B MATCH_CONDITION (A.ts < B.ts) ON A.obj_id = B.obj_id WINDOW B = 5 SECONDS
