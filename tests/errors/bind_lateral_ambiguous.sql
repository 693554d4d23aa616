SELECT A.door FROM badge A, badge B WINDOW = 5 SECONDS LATERAL VIEW explode(A.tags) t AS code
WHERE A.person = B.person AND code = 'x'
