SELECT A.person FROM taps A JOIN taps B ON A.person = B.person WINDOW (A, B) = 5 s WHERE A.ROWTIME > B.left_at
