SELECT A.person FROM badge A LEFT OUTER JOIN badge B ON A.person = B.person AND A.level / B.level > 1
WINDOW (A, B) = 5 SECONDS
