PRAGMA user_version = 8;
PRAGMA application_id = 1332898609;
BEGIN TRANSACTION;
CREATE TABLE "alerts" (
    id        INTEGER PRIMARY KEY AUTOINCREMENT,
    kind      TEXT NOT NULL,
    workflow  TEXT NOT NULL,
    run_id    TEXT,
    task      TEXT,
    idx       INTEGER,
    failure   TEXT,
    detail    TEXT,
    raised_at TEXT NOT NULL,
    due_at    TEXT,
    tries     INTEGER NOT NULL,
    sent      TEXT NOT NULL,
    error     TEXT
) STRICT;
INSERT INTO "alerts" VALUES(1,'task','failing','4t20b2x1xmfq','broken',-1,'{"kind":"exception","message":"ValueError: no such table: orders","detail":{"type":"ValueError","message":"no such table: orders","frames":[{"file":"tasks.py","line":39,"function":"fail","source":"    raise ValueError(\"no such table: orders\")","caret":[4,45]}],"inputs":{}}}',NULL,'2026-11-16T15:10:26.479243Z',NULL,1,'[]',NULL);
INSERT INTO "alerts" VALUES(2,'run','failing','4t20b2x1xmfq',NULL,NULL,'{"kind":"exception","message":"ValueError: no such table: orders","detail":{"type":"ValueError","message":"no such table: orders","frames":[{"file":"tasks.py","line":39,"function":"fail","source":"    raise ValueError(\"no such table: orders\")","caret":[4,45]}],"inputs":{}}}',NULL,'2026-11-16T15:10:26.496974Z',NULL,1,'[]',NULL);
INSERT INTO "alerts" VALUES(3,'task','failing','ft7jeb8y848r','broken',-1,'{"kind":"exception","message":"ValueError: no such table: orders","detail":{"type":"ValueError","message":"no such table: orders","frames":[{"file":"tasks.py","line":39,"function":"fail","source":"    raise ValueError(\"no such table: orders\")","caret":[4,45]}],"inputs":{}}}',NULL,'2026-11-16T15:10:26.548056Z',NULL,1,'[]',NULL);
INSERT INTO "alerts" VALUES(4,'run','failing','ft7jeb8y848r',NULL,NULL,'{"kind":"exception","message":"ValueError: no such table: orders","detail":{"type":"ValueError","message":"no such table: orders","frames":[{"file":"tasks.py","line":39,"function":"fail","source":"    raise ValueError(\"no such table: orders\")","caret":[4,45]}],"inputs":{}}}',NULL,'2026-11-16T15:10:26.573545Z',NULL,1,'[]',NULL);
CREATE TABLE attempts (
    run_id        TEXT NOT NULL,
    ordinal       INTEGER NOT NULL,
    idx           INTEGER NOT NULL,
    number        INTEGER NOT NULL,
    name          TEXT NOT NULL,
    status        TEXT NOT NULL,
    executor      TEXT NOT NULL,
    pool          TEXT,
    external_name TEXT NOT NULL,
    token_hash    TEXT NOT NULL,
    dispatched_at TEXT NOT NULL,
    started_at    TEXT,
    finished_at   TEXT,
    exit_code     INTEGER,
    failure       TEXT,
    closing       TEXT,
    closing_since TEXT,
    seq           INTEGER NOT NULL,
    seen_at       TEXT, waits_for TEXT, is_waiting INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (run_id, ordinal, idx, number)
) STRICT, WITHOUT ROWID;
INSERT INTO "attempts" VALUES('4t20b2x1xmfq',0,-1,1,'broken','failed','python',NULL,'local:@HOST@:@BOOT@:@NAMESPACE@:4t20b2x1xmfq/broken/0/1','08c139c8147add56ea98b4c3bca1025db1fd29b35587aad5b6cd90f6e827413a','2026-11-16T15:10:26.246150Z','2026-11-16T15:10:26.265970Z','2026-11-16T15:10:26.325693Z',1,'{"kind":"exception","message":"ValueError: no such table: orders","detail":{"type":"ValueError","message":"no such table: orders","frames":[{"file":"tasks.py","line":39,"function":"fail","source":"    raise ValueError(\"no such table: orders\")","caret":[4,45]}],"inputs":{}}}',NULL,NULL,1,NULL,NULL,0);
INSERT INTO "attempts" VALUES('4t20b2x1xmfq',0,-1,2,'broken','failed','python',NULL,'local:@HOST@:@BOOT@:@NAMESPACE@:4t20b2x1xmfq/broken/0/2','6c84f6702557a382189db9708e9662517d9f9dc0921c44da25cecb630d800b89','2026-11-16T15:10:26.427756Z','2026-11-16T15:10:26.428870Z','2026-11-16T15:10:26.469759Z',1,'{"kind":"exception","message":"ValueError: no such table: orders","detail":{"type":"ValueError","message":"no such table: orders","frames":[{"file":"tasks.py","line":39,"function":"fail","source":"    raise ValueError(\"no such table: orders\")","caret":[4,45]}],"inputs":{}}}',NULL,NULL,1,NULL,NULL,0);
INSERT INTO "attempts" VALUES('4t20b2x1xmfq',2,-1,1,'tidy','success','python',NULL,'local:@HOST@:@BOOT@:@NAMESPACE@:4t20b2x1xmfq/tidy/0/1','1fc648ae57bbc1aa566f764e42688634b2a163aae4f99eb78072887af546213f','2026-11-16T15:10:26.479243Z','2026-11-16T15:10:26.481311Z','2026-11-16T15:10:26.496212Z',0,NULL,NULL,NULL,1,NULL,NULL,0);
INSERT INTO "attempts" VALUES('634srefawcc3',0,-1,1,'flaky','failed','python',NULL,'local:@HOST@:@BOOT@:@NAMESPACE@:634srefawcc3/flaky/0/1','b1dd3351d30631021acc4ede1d5f0cf9780b3c07456fc95dce01fd9669b7999b','2026-11-16T15:10:30.505580Z','2026-11-16T15:10:30.526210Z','2026-11-16T15:10:30.559909Z',1,'{"kind":"exception","message":"ValueError: not yet","detail":{"type":"ValueError","message":"not yet","frames":[{"file":"tasks.py","line":45,"function":"fail_once","source":"        raise ValueError(\"not yet\")","caret":[8,35]}],"inputs":{}}}',NULL,NULL,1,NULL,NULL,0);
INSERT INTO "attempts" VALUES('7pb8tn1sdtwf',0,-1,1,'child','running','workflow',NULL,'run:jcfmabbatfht','b67d31286f4a6c409f8eee78b10ba0bce3dae87541658621a7c7a9dffe11a98b','2026-11-16T15:10:29.309202Z','2026-11-16T15:10:29.325497Z',NULL,NULL,NULL,NULL,NULL,1,'2026-11-16T15:10:29.325497Z','[{"run":"jcfmabbatfht","workflow":"sheltered"}]',1);
INSERT INTO "attempts" VALUES('8qzqww3wmt7t',0,-1,1,'extract','success','python',NULL,'local:@HOST@:@BOOT@:@NAMESPACE@:8qzqww3wmt7t/extract/0/1','8e919125366d31759bbd0bf9bcd2bcd3c4d7cecde89fd990c5155678cc2a65ff','2026-11-16T15:10:27.561416Z','2026-11-16T15:10:27.565837Z','2026-11-16T15:10:27.568084Z',0,NULL,NULL,NULL,1,NULL,NULL,0);
INSERT INTO "attempts" VALUES('8qzqww3wmt7t',1,-1,1,'transform','success','python',NULL,'local:@HOST@:@BOOT@:@NAMESPACE@:8qzqww3wmt7t/transform/0/1','e9aa080afbb8a16732050f080be2a892e9f6c208f4c13382e06d5d3bcb2db816','2026-11-16T15:10:27.574601Z','2026-11-16T15:10:27.597623Z','2026-11-16T15:10:27.621507Z',0,NULL,NULL,NULL,1,NULL,NULL,0);
INSERT INTO "attempts" VALUES('8qzqww3wmt7t',2,-1,1,'load','success','process',NULL,'local:@HOST@:@BOOT@:@NAMESPACE@:8qzqww3wmt7t/load/0/1','388b566798142c193fa6d619b135fe5e207d60de8b1d5fbcbfd1a3b339848dc0','2026-11-16T15:10:27.629547Z','2026-11-16T15:10:27.634891Z','2026-11-16T15:10:27.654161Z',0,NULL,NULL,NULL,1,NULL,NULL,0);
INSERT INTO "attempts" VALUES('a5q24cg8yqfe',0,-1,1,'forked','running','python',NULL,'local:@HOST@:@BOOT@:@NAMESPACE@:a5q24cg8yqfe/forked/0/1','f46a24bb051e4bf90cb476dbae5e3d2c66cc76cb0e8f195fa9535f4794aa9ca7','2026-11-16T15:10:27.809786Z','2026-11-16T15:10:27.839837Z',NULL,NULL,NULL,NULL,NULL,1,'2026-11-16T15:10:27.957640Z',NULL,0);
INSERT INTO "attempts" VALUES('a5q24cg8yqfe',1,-1,1,'interpreter','running','python',NULL,'local:@HOST@:@BOOT@:@NAMESPACE@:a5q24cg8yqfe/interpreter/0/1','61a91a4e6713aee4c93294cb7b78c9cb74fbce14a01ca82a65ac686058933e91','2026-11-16T15:10:27.809786Z','2026-11-16T15:10:27.850095Z',NULL,NULL,NULL,NULL,NULL,1,'2026-11-16T15:10:27.958551Z',NULL,0);
INSERT INTO "attempts" VALUES('a5q24cg8yqfe',2,-1,1,'shared','running','python',NULL,'local:@HOST@:@BOOT@:@NAMESPACE@:a5q24cg8yqfe/shared/0/1','faecf802a048029be9cfa78da63474b8f6837996b2d2f6705bf637caba085ebc','2026-11-16T15:10:27.809786Z','2026-11-16T15:10:27.841804Z',NULL,NULL,NULL,NULL,NULL,1,'2026-11-16T15:10:28.004309Z',NULL,0);
INSERT INTO "attempts" VALUES('a5q24cg8yqfe',3,-1,1,'command','running','process',NULL,'local:@HOST@:@BOOT@:@NAMESPACE@:a5q24cg8yqfe/command/0/1','05386195845b5ac05bf78377e99adfb26fe0cc7b5111563ab8b9c9a4dac9e49b','2026-11-16T15:10:27.809786Z','2026-11-16T15:10:27.838900Z',NULL,NULL,NULL,NULL,NULL,1,'2026-11-16T15:10:27.959679Z',NULL,0);
INSERT INTO "attempts" VALUES('ft7jeb8y848r',0,-1,1,'broken','failed','python',NULL,'local:@HOST@:@BOOT@:@NAMESPACE@:ft7jeb8y848r/broken/0/1','8b305f8a4be8645c01ba9a08385911ffe5cf1bf9a6ee563f5845cddc3f6a42c9','2026-11-16T15:10:26.395545Z','2026-11-16T15:10:26.401828Z','2026-11-16T15:10:26.422872Z',1,'{"kind":"exception","message":"ValueError: no such table: orders","detail":{"type":"ValueError","message":"no such table: orders","frames":[{"file":"tasks.py","line":39,"function":"fail","source":"    raise ValueError(\"no such table: orders\")","caret":[4,45]}],"inputs":{}}}',NULL,NULL,1,NULL,NULL,0);
INSERT INTO "attempts" VALUES('ft7jeb8y848r',0,-1,2,'broken','failed','python',NULL,'local:@HOST@:@BOOT@:@NAMESPACE@:ft7jeb8y848r/broken/0/2','77537fc0ceef26045ed10e63d0092e0a7359cca2f725621f4446c1c29a4a7ded','2026-11-16T15:10:26.525867Z','2026-11-16T15:10:26.527291Z','2026-11-16T15:10:26.547054Z',1,'{"kind":"exception","message":"ValueError: no such table: orders","detail":{"type":"ValueError","message":"no such table: orders","frames":[{"file":"tasks.py","line":39,"function":"fail","source":"    raise ValueError(\"no such table: orders\")","caret":[4,45]}],"inputs":{}}}',NULL,NULL,1,NULL,NULL,0);
INSERT INTO "attempts" VALUES('ft7jeb8y848r',2,-1,1,'tidy','success','python',NULL,'local:@HOST@:@BOOT@:@NAMESPACE@:ft7jeb8y848r/tidy/0/1','066e119163c9f96b410cd559ac933281bbdf1e538c40ebdd7e45a86cc7bf1e1b','2026-11-16T15:10:26.548056Z','2026-11-16T15:10:26.557643Z','2026-11-16T15:10:26.573173Z',0,NULL,NULL,NULL,1,NULL,NULL,0);
INSERT INTO "attempts" VALUES('j5e5176k2qt1',0,-1,1,'work','running','python',NULL,'local:@HOST@:@BOOT@:@NAMESPACE@:j5e5176k2qt1/work/0/1','f8fdf5dfe36f9f673e786586aff0d4a81c2f5ce11e35576432e7269363a8fda0','2026-11-16T15:10:29.651777Z','2026-11-16T15:10:29.661569Z',NULL,NULL,'{"kind":"cancelled","message":"cancelled by root","detail":null}','cancel','2026-11-16T15:10:31.282249Z',1,'2026-11-16T15:10:29.779246Z',NULL,0);
INSERT INTO "attempts" VALUES('jar4ynms0y8x',0,-1,1,'look','success','python',NULL,'local:@HOST@:@BOOT@:@NAMESPACE@:jar4ynms0y8x/look/0/1','6e54b74dc6ff050b23ea2d3c9a31f87b1a201ab9f1a00e4180fec79b745b0c77','2026-11-16T15:10:30.048066Z','2026-11-16T15:10:30.058663Z','2026-11-16T15:10:30.083812Z',0,NULL,NULL,NULL,1,NULL,NULL,0);
INSERT INTO "attempts" VALUES('jar4ynms0y8x',2,-1,1,'few','success','python',NULL,'local:@HOST@:@BOOT@:@NAMESPACE@:jar4ynms0y8x/few/0/1','9def3cfa82249be122ee4bfcf74a3af186c11c683d578a60fc2434e321f03b43','2026-11-16T15:10:30.084207Z','2026-11-16T15:10:30.087629Z','2026-11-16T15:10:30.116237Z',0,NULL,NULL,NULL,1,NULL,NULL,0);
INSERT INTO "attempts" VALUES('jar4ynms0y8x',3,-1,1,'after','running','python',NULL,'local:@HOST@:@BOOT@:@NAMESPACE@:jar4ynms0y8x/after/0/1','d1223eaba29813fd4cc8d4a752e293e790f4eee808889b3d6f709ed93389ce45','2026-11-16T15:10:30.116553Z','2026-11-16T15:10:30.118338Z',NULL,NULL,NULL,NULL,NULL,1,'2026-11-16T15:10:30.237879Z',NULL,0);
INSERT INTO "attempts" VALUES('jcfmabbatfht',0,-1,1,'work','running','python',NULL,'local:@HOST@:@BOOT@:@NAMESPACE@:jcfmabbatfht/work/0/1','6751018fc115ca5bbf04bc7fd90613cf5016472ae5b5ca40dbc6033c1fae184e','2026-11-16T15:10:29.325497Z','2026-11-16T15:10:29.341729Z',NULL,NULL,NULL,NULL,NULL,1,'2026-11-16T15:10:29.454412Z',NULL,0);
INSERT INTO "attempts" VALUES('jh268bzegy11',0,-1,1,'big','success','python',NULL,'local:@HOST@:@BOOT@:@NAMESPACE@:jh268bzegy11/big/0/1','8fa21a4c1a875032c8e4be47687ff537fc2275bf52bf8e64c95a43504b2570da','2026-11-16T15:10:29.464983Z','2026-11-16T15:10:29.484957Z','2026-11-16T15:10:29.517761Z',0,NULL,NULL,NULL,1,NULL,NULL,0);
INSERT INTO "attempts" VALUES('jh268bzegy11',1,-1,1,'count','running','python',NULL,'local:@HOST@:@BOOT@:@NAMESPACE@:jh268bzegy11/count/0/1','c66e69db29f4579630d004cebc04fb2db5345ef56e163e9c2fd710952c9ff79f','2026-11-16T15:10:29.518179Z','2026-11-16T15:10:29.523481Z',NULL,NULL,NULL,NULL,NULL,1,'2026-11-16T15:10:29.639171Z',NULL,0);
INSERT INTO "attempts" VALUES('k07zwfbtx0vs',0,-1,1,'look_up','success','python',NULL,'local:@HOST@:@BOOT@:@NAMESPACE@:k07zwfbtx0vs/look_up/0/1','f6e006e0a64420f538c98bb578c09379e2b32a69a1084e6eac83f763b429e558','2026-11-16T15:10:26.520354Z','2026-11-16T15:10:26.523070Z','2026-11-16T15:10:26.529665Z',0,NULL,NULL,NULL,1,NULL,NULL,0);
INSERT INTO "attempts" VALUES('nsdcxrmwyt2z',0,-1,1,'forked','cancelled','python',NULL,'local:@HOST@:@BOOT@:@NAMESPACE@:nsdcxrmwyt2z/forked/0/1','911c3e92462e635c0c9fbf40caf7e542f3bf34c3d459c084941f831860512009','2026-11-16T15:10:26.669295Z','2026-11-16T15:10:26.686293Z','2026-11-16T15:10:26.956247Z',NULL,'{"kind":"cancelled","message":"cancelled by root","detail":null}','cancel','2026-11-16T15:10:26.921872Z',2,'2026-11-16T15:10:26.798220Z',NULL,0);
INSERT INTO "attempts" VALUES('nsdcxrmwyt2z',1,-1,1,'interpreter','cancelled','python',NULL,'local:@HOST@:@BOOT@:@NAMESPACE@:nsdcxrmwyt2z/interpreter/0/1','d91f5025e1eebf21920c7bee83720f31caadfad0dae7e0e270069b17c5794a8e','2026-11-16T15:10:26.669295Z','2026-11-16T15:10:26.700492Z','2026-11-16T15:10:26.950914Z',NULL,'{"kind":"cancelled","message":"cancelled by root","detail":null}','cancel','2026-11-16T15:10:26.921872Z',2,'2026-11-16T15:10:26.814281Z',NULL,0);
INSERT INTO "attempts" VALUES('nsdcxrmwyt2z',2,-1,1,'shared','cancelled','python',NULL,'local:@HOST@:@BOOT@:@NAMESPACE@:nsdcxrmwyt2z/shared/0/1','cdf9aa12d53bfd9cdaf53be2d9df46ccc94fb8dadf87a7b65004fc99190c454f','2026-11-16T15:10:26.669295Z','2026-11-16T15:10:26.693750Z','2026-11-16T15:10:26.952018Z',NULL,'{"kind":"cancelled","message":"cancelled by root","detail":null}','cancel','2026-11-16T15:10:26.921872Z',2,'2026-11-16T15:10:26.853556Z',NULL,0);
INSERT INTO "attempts" VALUES('nsdcxrmwyt2z',3,-1,1,'command','cancelled','process',NULL,'local:@HOST@:@BOOT@:@NAMESPACE@:nsdcxrmwyt2z/command/0/1','e0b9f21a04cd7957bc9e09216b7298931cf72b965182175056e57dee6b643e31','2026-11-16T15:10:26.669295Z','2026-11-16T15:10:26.684689Z','2026-11-16T15:10:26.950491Z',NULL,'{"kind":"cancelled","message":"cancelled by root","detail":null}','cancel','2026-11-16T15:10:26.921872Z',2,'2026-11-16T15:10:26.804587Z',NULL,0);
INSERT INTO "attempts" VALUES('vrymq7nhcy39',0,-1,1,'forked','running','python',NULL,'local:@HOST@:@BOOT@:@NAMESPACE@:vrymq7nhcy39/forked/0/1','01fc41835b3836bdd62b85df4ebf6b610021f9699522b6005a8d80fbee34589c','2026-11-16T15:10:27.942223Z','2026-11-16T15:10:27.953915Z',NULL,NULL,NULL,NULL,NULL,1,'2026-11-16T15:10:28.069551Z',NULL,0);
INSERT INTO "attempts" VALUES('vrymq7nhcy39',1,-1,1,'interpreter','running','python',NULL,'local:@HOST@:@BOOT@:@NAMESPACE@:vrymq7nhcy39/interpreter/0/1','1fed8b15978c10c9d565969c608ba6f8740427a24a6175d26ecf8de6b7f135a5','2026-11-16T15:10:27.942223Z','2026-11-16T15:10:27.968308Z',NULL,NULL,NULL,NULL,NULL,1,'2026-11-16T15:10:28.078664Z',NULL,0);
INSERT INTO "attempts" VALUES('vrymq7nhcy39',2,-1,1,'shared','running','python',NULL,'local:@HOST@:@BOOT@:@NAMESPACE@:vrymq7nhcy39/shared/0/1','1c77fcfa5bb47b855f5b8ebbaa40ea9f6c011156c12f0e13b314408794a08890','2026-11-16T15:10:27.942223Z','2026-11-16T15:10:28.011111Z',NULL,NULL,NULL,NULL,NULL,1,'2026-11-16T15:10:28.164216Z',NULL,0);
INSERT INTO "attempts" VALUES('vrymq7nhcy39',3,-1,1,'command','running','process',NULL,'local:@HOST@:@BOOT@:@NAMESPACE@:vrymq7nhcy39/command/0/1','21d367475df8a473afb59c071b5c8555ca92eae8e77e440b67a6a21aa4f92966','2026-11-16T15:10:27.942223Z','2026-11-16T15:10:27.950496Z',NULL,NULL,NULL,NULL,NULL,1,'2026-11-16T15:10:28.069551Z',NULL,0);
INSERT INTO "attempts" VALUES('w5nsrhztj4zj',0,-1,1,'submit','running','python',NULL,'local:@HOST@:@BOOT@:@NAMESPACE@:w5nsrhztj4zj/submit/0/1','808be435eb4d7ef29c3bc3a556f43d868b10dba827b457fa062e8f970bd90944','2026-11-16T15:10:29.119564Z','2026-11-16T15:10:29.131419Z',NULL,NULL,NULL,NULL,NULL,1,'2026-11-16T15:10:29.131419Z','[{"call":"tasks:is_released","args":{},"every":0.2}]',1);
INSERT INTO "attempts" VALUES('x4dmeyxbj673',0,-1,1,'extract','success','python',NULL,'local:@HOST@:@BOOT@:@NAMESPACE@:x4dmeyxbj673/extract/0/1','f06cdbb8c844737db17e3b74f645f5e14aa8b0387142e2e6672a4a31967ae80a','2026-11-16T15:10:26.119194Z','2026-11-16T15:10:26.185036Z','2026-11-16T15:10:26.218948Z',0,NULL,NULL,NULL,1,NULL,NULL,0);
INSERT INTO "attempts" VALUES('x4dmeyxbj673',1,-1,1,'transform','success','python',NULL,'local:@HOST@:@BOOT@:@NAMESPACE@:x4dmeyxbj673/transform/0/1','3f20a83245b8925d700814748072010a06e2fa56c622d8848f1ca5d279405064','2026-11-16T15:10:26.219274Z','2026-11-16T15:10:26.231617Z','2026-11-16T15:10:26.277659Z',0,NULL,NULL,NULL,1,NULL,NULL,0);
INSERT INTO "attempts" VALUES('x4dmeyxbj673',2,-1,1,'load','success','process',NULL,'local:@HOST@:@BOOT@:@NAMESPACE@:x4dmeyxbj673/load/0/1','4308cf48ff324faea7301e4c743e51861684029e8228116e9a808e7152fbc3de','2026-11-16T15:10:26.278650Z','2026-11-16T15:10:26.295783Z','2026-11-16T15:10:26.317621Z',0,NULL,NULL,NULL,1,NULL,NULL,0);
INSERT INTO "attempts" VALUES('xvay97bf06g2',0,-1,1,'build','success','python',NULL,'local:@HOST@:@BOOT@:@NAMESPACE@:xvay97bf06g2/build/0/1','0b2e4b577cc4e6c7fd81101e0db644ebaa9411f29c6f2d03be951218930c255b','2026-11-16T15:10:28.958705Z','2026-11-16T15:10:28.963570Z','2026-11-16T15:10:28.966226Z',0,NULL,NULL,NULL,1,NULL,NULL,0);
INSERT INTO "attempts" VALUES('y7thk0stncx3',0,-1,1,'work','running','python','narrow','local:@HOST@:@BOOT@:@NAMESPACE@:y7thk0stncx3/work/0/1','85ec215d03b89620424c86524e37376ce8cc48bddbb9b10ad621724b86125dc6','2026-11-16T15:10:29.862164Z','2026-11-16T15:10:29.875293Z',NULL,NULL,NULL,NULL,NULL,1,'2026-11-16T15:10:29.996215Z',NULL,0);
INSERT INTO "attempts" VALUES('y7ze2gw6qxeh',0,-1,1,'work','running','python',NULL,'local:@HOST@:@BOOT@:@NAMESPACE@:y7ze2gw6qxeh/work/0/1','503995b785f983597f2e9002d7d051399719efb7a23aaa554a7f6442dd6b300e','2026-11-16T15:10:28.357907Z','2026-11-16T15:10:28.369545Z',NULL,NULL,NULL,NULL,NULL,1,'2026-11-16T15:10:28.483336Z',NULL,0);
INSERT INTO "attempts" VALUES('z3zpnnpvtb7h',0,-1,1,'flaky','failed','python',NULL,'local:@HOST@:@BOOT@:@NAMESPACE@:z3zpnnpvtb7h/flaky/0/1','859e0145f8d33e3c58af7ee3d33ac65a8c1082f132c3b1a530537dddbbd90ac7','2026-11-16T15:10:28.786388Z','2026-11-16T15:10:28.799270Z','2026-11-16T15:10:28.837421Z',1,'{"kind":"exception","message":"ValueError: not yet","detail":{"type":"ValueError","message":"not yet","frames":[{"file":"tasks.py","line":45,"function":"fail_once","source":"        raise ValueError(\"not yet\")","caret":[8,35]}],"inputs":{}}}',NULL,NULL,1,NULL,NULL,0);
INSERT INTO "attempts" VALUES('z4tvdjxta20v',0,-1,1,'extract','success','python',NULL,'local:@HOST@:@BOOT@:@NAMESPACE@:z4tvdjxta20v/extract/0/1','509ab5beafaf9d49ef3d57403cc13e09ff3a956c915d91d647908a0dfe731e4e','2026-11-16T15:10:27.561416Z','2026-11-16T15:10:27.571637Z','2026-11-16T15:10:27.602457Z',0,NULL,NULL,NULL,1,NULL,NULL,0);
INSERT INTO "attempts" VALUES('z4tvdjxta20v',1,-1,1,'transform','success','python',NULL,'local:@HOST@:@BOOT@:@NAMESPACE@:z4tvdjxta20v/transform/0/1','800a96220354d4eece44f4a522642a79ebc6a571edbd49aa52b92ed6d08d1076','2026-11-16T15:10:27.607969Z','2026-11-16T15:10:27.621907Z','2026-11-16T15:10:27.642642Z',0,NULL,NULL,NULL,1,NULL,NULL,0);
INSERT INTO "attempts" VALUES('z4tvdjxta20v',2,-1,1,'load','success','process',NULL,'local:@HOST@:@BOOT@:@NAMESPACE@:z4tvdjxta20v/load/0/1','f1249b15d962a742c3fbab8f9bf38ad172d0c7001fc9a32fe060bfc21dcb5987','2026-11-16T15:10:27.642963Z','2026-11-16T15:10:27.650889Z','2026-11-16T15:10:27.658601Z',0,NULL,NULL,NULL,1,NULL,NULL,0);
INSERT INTO "attempts" VALUES('z6hrt8wwq5wj',0,0,1,'each','success','python',NULL,'local:@HOST@:@BOOT@:@NAMESPACE@:z6hrt8wwq5wj/each/0/1','dd5e60c6de4292d78b70d9c19758082852d15673b539fcbc904132d5a8560d28','2026-11-16T15:10:28.526164Z','2026-11-16T15:10:28.539364Z','2026-11-16T15:10:28.649745Z',0,NULL,NULL,NULL,1,NULL,NULL,0);
INSERT INTO "attempts" VALUES('z6hrt8wwq5wj',0,1,1,'each','running','python',NULL,'local:@HOST@:@BOOT@:@NAMESPACE@:z6hrt8wwq5wj/each/1/1','63acc529e66db21bbd9efb2c6fd9e935f8bfbebd039b240622e4c9783bc54c88','2026-11-16T15:10:28.526164Z','2026-11-16T15:10:28.544754Z',NULL,NULL,NULL,NULL,NULL,1,'2026-11-16T15:10:28.665603Z',NULL,0);
INSERT INTO "attempts" VALUES('z6hrt8wwq5wj',0,2,1,'each','success','python',NULL,'local:@HOST@:@BOOT@:@NAMESPACE@:z6hrt8wwq5wj/each/2/1','b6ecc0d15aecac8afbe95ebd4f209a3d2c554ac3592f5c3ca5dc5a2dc946328e','2026-11-16T15:10:28.526164Z','2026-11-16T15:10:28.543580Z','2026-11-16T15:10:28.599784Z',0,NULL,NULL,NULL,1,NULL,NULL,0);
INSERT INTO "attempts" VALUES('z6hrt8wwq5wj',0,3,1,'each','running','python',NULL,'local:@HOST@:@BOOT@:@NAMESPACE@:z6hrt8wwq5wj/each/3/1','78bf054f20056a8b57df6b7c58efc7e0914c28312de704ba52bd54a44d7be27d','2026-11-16T15:10:28.600864Z','2026-11-16T15:10:28.609901Z',NULL,NULL,NULL,NULL,NULL,1,'2026-11-16T15:10:28.745561Z',NULL,0);
INSERT INTO "attempts" VALUES('z6hrt8wwq5wj',0,4,1,'each','success','python',NULL,'local:@HOST@:@BOOT@:@NAMESPACE@:z6hrt8wwq5wj/each/4/1','ad742ab359059a89e0455e18b814f922080238da03ce868138b230763892f3c4','2026-11-16T15:10:28.650924Z','2026-11-16T15:10:28.673530Z','2026-11-16T15:10:28.714490Z',0,NULL,NULL,NULL,1,NULL,NULL,0);
INSERT INTO "attempts" VALUES('z6hrt8wwq5wj',0,5,1,'each','running','python',NULL,'local:@HOST@:@BOOT@:@NAMESPACE@:z6hrt8wwq5wj/each/5/1','ed508e20dc59c33776a5b2c4dc9ad6ca6d0e063c08c44beb60e55189e7d6dd13','2026-11-16T15:10:28.721558Z','2026-11-16T15:10:28.723556Z',NULL,NULL,NULL,NULL,NULL,1,'2026-11-16T15:10:28.838523Z',NULL,0);
INSERT INTO "attempts" VALUES('zw67ackg7zee',0,-1,1,'forked','running','python',NULL,'local:@HOST@:@BOOT@:@NAMESPACE@:zw67ackg7zee/forked/0/1','e419d505a27e12f9d2d7610418d2f5d00925730bb03f3757ed8cf33881355788','2026-11-16T15:10:28.169888Z','2026-11-16T15:10:28.191797Z',NULL,NULL,NULL,NULL,NULL,1,'2026-11-16T15:10:28.307470Z',NULL,0);
INSERT INTO "attempts" VALUES('zw67ackg7zee',1,-1,1,'interpreter','running','python',NULL,'local:@HOST@:@BOOT@:@NAMESPACE@:zw67ackg7zee/interpreter/0/1','de1705831886421d8a190db1710ccb349f056078998dabcaf0975f8fbeecc2b9','2026-11-16T15:10:28.169888Z','2026-11-16T15:10:28.225960Z',NULL,NULL,NULL,NULL,NULL,1,'2026-11-16T15:10:28.343412Z',NULL,0);
INSERT INTO "attempts" VALUES('zw67ackg7zee',2,-1,1,'shared','running','python',NULL,'local:@HOST@:@BOOT@:@NAMESPACE@:zw67ackg7zee/shared/0/1','28acac2605447b1751ac4e587f4b93cbc76df30c4b29a8f7dc435dcbedb899f5','2026-11-16T15:10:28.169888Z','2026-11-16T15:10:28.210266Z',NULL,NULL,NULL,NULL,NULL,1,'2026-11-16T15:10:28.367673Z',NULL,0);
INSERT INTO "attempts" VALUES('zw67ackg7zee',3,-1,1,'command','running','process',NULL,'local:@HOST@:@BOOT@:@NAMESPACE@:zw67ackg7zee/command/0/1','7b75fd7f22eb83e68ae1d20c3097d0a28faa78c8f314117d08ee342cc0ba879e','2026-11-16T15:10:28.169888Z','2026-11-16T15:10:28.210850Z',NULL,NULL,NULL,NULL,NULL,1,'2026-11-16T15:10:28.328718Z',NULL,0);
CREATE TABLE audit (
    id      INTEGER PRIMARY KEY AUTOINCREMENT,
    at      TEXT NOT NULL,
    by      TEXT NOT NULL,
    action  TEXT NOT NULL,
    subject TEXT NOT NULL,
    detail  TEXT
) STRICT;
INSERT INTO "audit" VALUES(1,'2026-11-16T15:10:25.795198Z','root','workflow.deploy','asking','{"version": "5817dd71d902b7e5"}');
INSERT INTO "audit" VALUES(2,'2026-11-16T15:10:25.795658Z','root','workflow.deploy','branching','{"version": "2e2847d0ecf58bd6"}');
INSERT INTO "audit" VALUES(3,'2026-11-16T15:10:25.795811Z','root','workflow.deploy','cached','{"version": "42fdb07ebc473ff6"}');
INSERT INTO "audit" VALUES(4,'2026-11-16T15:10:25.795967Z','root','workflow.deploy','deferring','{"version": "c2c57a1a6972ea04"}');
INSERT INTO "audit" VALUES(5,'2026-11-16T15:10:25.796149Z','root','workflow.deploy','failing','{"version": "875b6d5f05e31b2a"}');
INSERT INTO "audit" VALUES(6,'2026-11-16T15:10:25.796366Z','root','workflow.deploy','fan','{"version": "9f3fe16aba6254bc"}');
INSERT INTO "audit" VALUES(7,'2026-11-16T15:10:25.796542Z','root','workflow.deploy','holding','{"version": "208a90089810415e"}');
INSERT INTO "audit" VALUES(8,'2026-11-16T15:10:25.796696Z','root','workflow.deploy','large','{"version": "b0c2645a836dffbb"}');
INSERT INTO "audit" VALUES(9,'2026-11-16T15:10:25.796953Z','root','workflow.deploy','late','{"version": "5f5d2f3b5a2e7901"}');
INSERT INTO "audit" VALUES(10,'2026-11-16T15:10:25.797227Z','root','workflow.deploy','parent','{"version": "175a38f1d493e3c6"}');
INSERT INTO "audit" VALUES(11,'2026-11-16T15:10:25.797494Z','root','workflow.deploy','sheltered','{"version": "501ed5feeff35b2a"}');
INSERT INTO "audit" VALUES(12,'2026-11-16T15:10:25.797698Z','root','workflow.deploy','retrying','{"version": "e28689228e16f4da"}');
INSERT INTO "audit" VALUES(13,'2026-11-16T15:10:25.797989Z','root','workflow.deploy','sample','{"version": "6f04fc7e931c1ca9"}');
INSERT INTO "audit" VALUES(14,'2026-11-16T15:10:25.798175Z','root','workflow.deploy','sheltered','{"version": "501ed5feeff35b2a"}');
INSERT INTO "audit" VALUES(15,'2026-11-16T15:10:25.798366Z','root','workflow.deploy','single','{"version": "8f527249f6f9a5de"}');
INSERT INTO "audit" VALUES(16,'2026-11-16T15:10:25.798552Z','root','workflow.deploy','stubborn','{"version": "f05362c126252d6e"}');
INSERT INTO "audit" VALUES(17,'2026-11-16T15:10:26.916877Z','root','run.cancel','nsdcxrmwyt2z',NULL);
INSERT INTO "audit" VALUES(18,'2026-11-16T15:10:30.701234Z','root','run.pause','634srefawcc3',NULL);
INSERT INTO "audit" VALUES(19,'2026-11-16T15:10:30.933542Z','root','run.pause','zw67ackg7zee',NULL);
INSERT INTO "audit" VALUES(20,'2026-11-16T15:10:31.289460Z','root','run.cancel','j5e5176k2qt1',NULL);
INSERT INTO "audit" VALUES(21,'2026-11-16T15:10:32.398818Z','root','run.cancel','vrymq7nhcy39',NULL);
INSERT INTO "audit" VALUES(22,'2026-11-16T15:10:32.749649Z','root','run.retry','ft7jeb8y848r',NULL);
CREATE TABLE buckets (
    name   TEXT NOT NULL PRIMARY KEY,
    tokens REAL NOT NULL,
    boot   TEXT NOT NULL,
    at     REAL NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE commands (
    id         INTEGER PRIMARY KEY AUTOINCREMENT,
    run_id     TEXT NOT NULL,
    kind       TEXT NOT NULL,
    asked_by   TEXT NOT NULL,
    task       TEXT,
    everything INTEGER NOT NULL,
    asked_at   TEXT NOT NULL,
    done_at    TEXT
, comment TEXT) STRICT;
INSERT INTO "commands" VALUES(1,'nsdcxrmwyt2z','cancel','root',NULL,0,'2026-11-16T15:10:26.912206Z','2026-11-16T15:10:26.921872Z',NULL);
INSERT INTO "commands" VALUES(2,'634srefawcc3','pause','root',NULL,0,'2026-11-16T15:10:30.697673Z','2026-11-16T15:10:30.703423Z',NULL);
INSERT INTO "commands" VALUES(3,'zw67ackg7zee','pause','root',NULL,0,'2026-11-16T15:10:30.930405Z','2026-11-16T15:10:30.935327Z',NULL);
INSERT INTO "commands" VALUES(4,'j5e5176k2qt1','cancel','root',NULL,0,'2026-11-16T15:10:31.277815Z','2026-11-16T15:10:31.282249Z',NULL);
INSERT INTO "commands" VALUES(5,'vrymq7nhcy39','cancel','root',NULL,0,'2026-11-16T15:10:32.395874Z',NULL,NULL);
INSERT INTO "commands" VALUES(6,'ft7jeb8y848r','retry','root',NULL,0,'2026-11-16T15:10:32.748551Z',NULL,NULL);
CREATE TABLE counter (
    id      INTEGER NOT NULL PRIMARY KEY CHECK (id = 1),
    changed INTEGER NOT NULL
) STRICT;
INSERT INTO "counter" VALUES(1,127);
CREATE TABLE leftovers (
    run_id TEXT PRIMARY KEY
) STRICT, WITHOUT ROWID;
CREATE TABLE limits (
    name  TEXT NOT NULL PRIMARY KEY,
    slots INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
INSERT INTO "limits" VALUES('*',32);
INSERT INTO "limits" VALUES('executor:process',16);
INSERT INTO "limits" VALUES('pool:narrow',1);
CREATE TABLE locations (
    name       TEXT PRIMARY KEY,
    source     TEXT NOT NULL,
    due_at     TEXT NOT NULL,
    is_asked   INTEGER NOT NULL DEFAULT 0,
    held_until TEXT,
    digest     TEXT,
    seen       TEXT,
    looked_at  TEXT,
    changed_at TEXT,
    code       TEXT,
    error      TEXT,
    output     TEXT
) STRICT, WITHOUT ROWID;
CREATE TABLE meta (
    name  TEXT NOT NULL PRIMARY KEY,
    value BLOB NOT NULL
) STRICT, WITHOUT ROWID;
INSERT INTO "meta" VALUES('signing_key',X'C8D40909ED7505C042CB81B2A1DB117348E7B6D90356C35129C9A6B40CD357C3');
CREATE TABLE rates (
    name    TEXT NOT NULL PRIMARY KEY,
    count   INTEGER NOT NULL,
    seconds REAL NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE runs (
    id                  TEXT NOT NULL PRIMARY KEY,
    workflow            TEXT NOT NULL,
    version             TEXT NOT NULL,
    status              TEXT NOT NULL,
    trigger             TEXT NOT NULL,
    params              TEXT NOT NULL,
    created_at          TEXT NOT NULL,
    scheduled_for       TEXT,
    started_at          TEXT,
    finished_at         TEXT,
    error               TEXT,
    round               INTEGER NOT NULL,
    priority            INTEGER NOT NULL,
    cancel_requested_at TEXT,
    note                TEXT,
    key                 TEXT,
    owner               TEXT,
    epoch               INTEGER NOT NULL,
    attention           INTEGER NOT NULL,
    changed             INTEGER NOT NULL
, fresh INTEGER NOT NULL DEFAULT 0, parent TEXT) STRICT, WITHOUT ROWID;
INSERT INTO "runs" VALUES('00snstsqd60h','cached','42fdb07ebc473ff6','success','manual','{}','2026-11-16T15:10:27.706959Z',NULL,'2026-11-16T15:10:27.713085Z','2026-11-16T15:10:27.713085Z',NULL,1,0,NULL,NULL,NULL,NULL,1,0,58,0,NULL);
INSERT INTO "runs" VALUES('24nbwc1q6k35','sample','6f04fc7e931c1ca9','pending','manual','{"second":5}','2026-11-16T15:10:32.632576Z',NULL,NULL,NULL,NULL,1,0,NULL,NULL,'nightly',NULL,0,1,126,0,NULL);
INSERT INTO "runs" VALUES('4t20b2x1xmfq','failing','875b6d5f05e31b2a','failed','manual','{}','2026-11-16T15:10:26.224754Z',NULL,'2026-11-16T15:10:26.246150Z','2026-11-16T15:10:26.496974Z','task `broken` failed: ValueError: no such table: orders',1,0,NULL,NULL,NULL,NULL,1,0,32,0,NULL);
INSERT INTO "runs" VALUES('634srefawcc3','retrying','e28689228e16f4da','paused','manual','{}','2026-11-16T15:10:30.486391Z',NULL,'2026-11-16T15:10:30.505580Z',NULL,NULL,1,0,NULL,'paused by root',NULL,NULL,1,0,120,0,NULL);
INSERT INTO "runs" VALUES('7pb8tn1sdtwf','parent','175a38f1d493e3c6','running','manual','{}','2026-11-16T15:10:29.291188Z',NULL,'2026-11-16T15:10:29.309202Z',NULL,NULL,1,0,NULL,NULL,NULL,'7d97059cad3413a6',1,1,98,0,NULL);
INSERT INTO "runs" VALUES('8qzqww3wmt7t','sample','6f04fc7e931c1ca9','success','backfill','{"second":2}','2026-11-16T15:10:27.559859Z','2026-01-02T01:00:00.000000Z','2026-11-16T15:10:27.561416Z','2026-11-16T15:10:27.657552Z',NULL,1,0,NULL,NULL,NULL,NULL,1,0,55,0,NULL);
INSERT INTO "runs" VALUES('a5q24cg8yqfe','holding','208a90089810415e','running','manual','{}','2026-11-16T15:10:27.802184Z',NULL,'2026-11-16T15:10:27.809786Z',NULL,NULL,1,0,NULL,NULL,NULL,'7d97059cad3413a6',1,1,66,0,NULL);
INSERT INTO "runs" VALUES('d4ex1msxn0mz','single','8f527249f6f9a5de','pending','manual','{}','2026-11-16T15:10:30.196957Z',NULL,NULL,NULL,NULL,1,0,NULL,NULL,NULL,NULL,0,1,114,0,NULL);
INSERT INTO "runs" VALUES('ft7jeb8y848r','failing','875b6d5f05e31b2a','failed','manual','{}','2026-11-16T15:10:26.389166Z',NULL,'2026-11-16T15:10:26.395545Z','2026-11-16T15:10:26.573545Z','task `broken` failed: ValueError: no such table: orders',1,0,NULL,NULL,NULL,NULL,1,1,127,0,NULL);
INSERT INTO "runs" VALUES('j5e5176k2qt1','stubborn','f05362c126252d6e','running','manual','{}','2026-11-16T15:10:29.637001Z',NULL,'2026-11-16T15:10:29.651777Z',NULL,NULL,1,0,'2026-11-16T15:10:31.282249Z','cancelled by root',NULL,'7d97059cad3413a6',1,1,124,0,NULL);
INSERT INTO "runs" VALUES('jar4ynms0y8x','branching','2e2847d0ecf58bd6','running','manual','{}','2026-11-16T15:10:30.037569Z',NULL,'2026-11-16T15:10:30.048066Z',NULL,NULL,1,0,NULL,NULL,NULL,'7d97059cad3413a6',1,1,115,0,NULL);
INSERT INTO "runs" VALUES('jcfmabbatfht','sheltered','501ed5feeff35b2a','running','manual','{"label":"one"}','2026-11-16T15:10:29.320482Z',NULL,'2026-11-16T15:10:29.325497Z',NULL,NULL,1,0,NULL,NULL,'7pb8tn1sdtwf/child/0/1','7d97059cad3413a6',1,1,99,0,'7pb8tn1sdtwf/child/0/1');
INSERT INTO "runs" VALUES('jh268bzegy11','large','b0c2645a836dffbb','running','manual','{}','2026-11-16T15:10:29.457390Z',NULL,'2026-11-16T15:10:29.464983Z',NULL,NULL,1,0,NULL,NULL,NULL,'7d97059cad3413a6',1,1,103,0,NULL);
INSERT INTO "runs" VALUES('k07zwfbtx0vs','cached','42fdb07ebc473ff6','success','manual','{}','2026-11-16T15:10:26.514393Z',NULL,'2026-11-16T15:10:26.520354Z','2026-11-16T15:10:26.530391Z',NULL,1,0,NULL,NULL,NULL,NULL,1,0,36,0,NULL);
INSERT INTO "runs" VALUES('nsdcxrmwyt2z','holding','208a90089810415e','cancelled','manual','{}','2026-11-16T15:10:26.661705Z',NULL,'2026-11-16T15:10:26.669295Z','2026-11-16T15:10:26.960888Z',NULL,1,0,'2026-11-16T15:10:26.921872Z','cancelled by root',NULL,NULL,1,0,48,0,NULL);
INSERT INTO "runs" VALUES('vrymq7nhcy39','holding','208a90089810415e','running','manual','{}','2026-11-16T15:10:27.936433Z',NULL,'2026-11-16T15:10:27.942223Z',NULL,NULL,1,0,'2026-11-16T15:10:32.395874Z',NULL,NULL,'7d97059cad3413a6',1,1,125,0,NULL);
INSERT INTO "runs" VALUES('w5nsrhztj4zj','deferring','c2c57a1a6972ea04','running','manual','{}','2026-11-16T15:10:29.110736Z',NULL,'2026-11-16T15:10:29.119564Z',NULL,NULL,1,0,NULL,NULL,NULL,'7d97059cad3413a6',1,1,94,0,NULL);
INSERT INTO "runs" VALUES('x4dmeyxbj673','sample','6f04fc7e931c1ca9','success','manual','{"second":2}','2026-11-16T15:10:26.017482Z',NULL,'2026-11-16T15:10:26.119194Z','2026-11-16T15:10:26.319081Z',NULL,1,0,NULL,NULL,NULL,NULL,1,0,25,0,NULL);
INSERT INTO "runs" VALUES('xvay97bf06g2','asking','5817dd71d902b7e5','running','manual','{}','2026-11-16T15:10:28.944494Z',NULL,'2026-11-16T15:10:28.958705Z',NULL,NULL,1,0,NULL,NULL,NULL,'7d97059cad3413a6',1,1,91,0,NULL);
INSERT INTO "runs" VALUES('y7thk0stncx3','single','8f527249f6f9a5de','running','manual','{}','2026-11-16T15:10:29.848038Z',NULL,'2026-11-16T15:10:29.862164Z',NULL,NULL,1,0,NULL,NULL,NULL,'7d97059cad3413a6',1,1,109,0,NULL);
INSERT INTO "runs" VALUES('y7ze2gw6qxeh','late','5f5d2f3b5a2e7901','running','manual','{}','2026-11-16T15:10:28.344997Z',NULL,'2026-11-16T15:10:28.357907Z',NULL,NULL,1,0,NULL,NULL,NULL,'7d97059cad3413a6',1,1,78,0,NULL);
INSERT INTO "runs" VALUES('z3zpnnpvtb7h','retrying','e28689228e16f4da','running','manual','{}','2026-11-16T15:10:28.776115Z',NULL,'2026-11-16T15:10:28.786388Z',NULL,NULL,1,0,NULL,NULL,NULL,'7d97059cad3413a6',1,1,88,0,NULL);
INSERT INTO "runs" VALUES('z4tvdjxta20v','sample','6f04fc7e931c1ca9','success','backfill','{"second":2}','2026-11-16T15:10:27.559859Z','2026-01-01T01:00:00.000000Z','2026-11-16T15:10:27.561416Z','2026-11-16T15:10:27.658601Z',NULL,1,0,NULL,NULL,NULL,NULL,1,0,56,0,NULL);
INSERT INTO "runs" VALUES('z6hrt8wwq5wj','fan','9f3fe16aba6254bc','running','manual','{}','2026-11-16T15:10:28.504799Z',NULL,'2026-11-16T15:10:28.526164Z',NULL,NULL,1,0,NULL,NULL,NULL,'7d97059cad3413a6',1,1,88,0,NULL);
INSERT INTO "runs" VALUES('zw67ackg7zee','holding','208a90089810415e','paused','manual','{}','2026-11-16T15:10:28.139748Z',NULL,'2026-11-16T15:10:28.169888Z',NULL,NULL,1,0,NULL,'paused by root',NULL,'7d97059cad3413a6',1,1,122,0,NULL);
CREATE TABLE schedulers (
    id          TEXT NOT NULL PRIMARY KEY,
    identity    TEXT NOT NULL,
    kind        TEXT NOT NULL,
    started_at  TEXT NOT NULL,
    lease_boot  TEXT NOT NULL,
    lease_until REAL NOT NULL
) STRICT, WITHOUT ROWID;
INSERT INTO "schedulers" VALUES('7d97059cad3413a6','@HOST@/@BOOT@/@NAMESPACE@/21750/72609','scheduler','2026-11-16T15:10:26.119194Z','@BOOT@',781.409313614);
CREATE TABLE tasks (
    run_id           TEXT NOT NULL,
    ordinal          INTEGER NOT NULL,
    idx              INTEGER NOT NULL,
    name             TEXT NOT NULL,
    status           TEXT NOT NULL,
    executor         TEXT NOT NULL,
    attempt          INTEGER NOT NULL,
    earlier_attempts INTEGER NOT NULL,
    reason           TEXT,
    cause_name       TEXT,
    cause_idx        INTEGER,
    failure          TEXT,
    exit_code        INTEGER,
    dispatched_at    TEXT,
    started_at       TEXT,
    finished_at      TEXT,
    retry_at         TEXT,
    output_key       TEXT,
    output_size      INTEGER,
    output           TEXT,
    changed          INTEGER NOT NULL, instances INTEGER, item TEXT, cache_key TEXT,
    PRIMARY KEY (run_id, ordinal, idx)
) STRICT, WITHOUT ROWID;
INSERT INTO "tasks" VALUES('00snstsqd60h',0,-1,'look_up','success','python',0,0,'cached: the same as in run k07zwfbtx0vs',NULL,NULL,NULL,NULL,NULL,'2026-11-16T15:10:27.713085Z','2026-11-16T15:10:27.713085Z',NULL,NULL,NULL,'{"rows":12,"attempt":1}',58,NULL,NULL,NULL);
INSERT INTO "tasks" VALUES('4t20b2x1xmfq',0,-1,'broken','failed','python',2,0,NULL,NULL,NULL,'{"kind":"exception","message":"ValueError: no such table: orders","detail":{"type":"ValueError","message":"no such table: orders","frames":[{"file":"tasks.py","line":39,"function":"fail","source":"    raise ValueError(\"no such table: orders\")","caret":[4,45]}],"inputs":{}}}',1,'2026-11-16T15:10:26.427756Z','2026-11-16T15:10:26.428870Z','2026-11-16T15:10:26.469759Z',NULL,NULL,NULL,NULL,31,NULL,NULL,NULL);
INSERT INTO "tasks" VALUES('4t20b2x1xmfq',1,-1,'after','skipped','python',0,0,'broken failed','broken',-1,NULL,NULL,NULL,NULL,'2026-11-16T15:10:26.479243Z',NULL,NULL,NULL,NULL,31,NULL,NULL,NULL);
INSERT INTO "tasks" VALUES('4t20b2x1xmfq',2,-1,'tidy','success','python',1,0,NULL,NULL,NULL,NULL,0,'2026-11-16T15:10:26.479243Z','2026-11-16T15:10:26.481311Z','2026-11-16T15:10:26.496212Z',NULL,NULL,NULL,'{"rows":12,"attempt":1}',32,NULL,NULL,NULL);
INSERT INTO "tasks" VALUES('634srefawcc3',0,-1,'flaky','pending','python',1,0,NULL,NULL,NULL,'{"kind":"exception","message":"ValueError: not yet","detail":{"type":"ValueError","message":"not yet","frames":[{"file":"tasks.py","line":45,"function":"fail_once","source":"        raise ValueError(\"not yet\")","caret":[8,35]}],"inputs":{}}}',1,'2026-11-16T15:10:30.505580Z','2026-11-16T15:10:30.526210Z','2026-11-16T15:10:30.559909Z','2026-11-16T15:11:00.560326Z',NULL,NULL,NULL,118,NULL,NULL,NULL);
INSERT INTO "tasks" VALUES('7pb8tn1sdtwf',0,-1,'child','running','workflow',1,0,NULL,NULL,NULL,NULL,NULL,'2026-11-16T15:10:29.309202Z','2026-11-16T15:10:29.325497Z',NULL,NULL,NULL,NULL,NULL,98,NULL,NULL,NULL);
INSERT INTO "tasks" VALUES('7pb8tn1sdtwf',1,-1,'after','pending','python',0,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,96,NULL,NULL,NULL);
INSERT INTO "tasks" VALUES('8qzqww3wmt7t',0,-1,'extract','success','python',1,0,NULL,NULL,NULL,NULL,0,'2026-11-16T15:10:27.561416Z','2026-11-16T15:10:27.565837Z','2026-11-16T15:10:27.568084Z',NULL,NULL,NULL,'{"rows":12,"attempt":1}',51,NULL,NULL,NULL);
INSERT INTO "tasks" VALUES('8qzqww3wmt7t',1,-1,'transform','success','python',1,0,NULL,NULL,NULL,NULL,0,'2026-11-16T15:10:27.574601Z','2026-11-16T15:10:27.597623Z','2026-11-16T15:10:27.621507Z',NULL,NULL,NULL,'14',53,NULL,NULL,NULL);
INSERT INTO "tasks" VALUES('8qzqww3wmt7t',2,-1,'load','success','process',1,0,NULL,NULL,NULL,NULL,0,'2026-11-16T15:10:27.629547Z','2026-11-16T15:10:27.634891Z','2026-11-16T15:10:27.654161Z',NULL,NULL,NULL,NULL,55,NULL,NULL,NULL);
INSERT INTO "tasks" VALUES('a5q24cg8yqfe',0,-1,'forked','running','python',1,0,NULL,NULL,NULL,NULL,NULL,'2026-11-16T15:10:27.809786Z','2026-11-16T15:10:27.839837Z',NULL,NULL,NULL,NULL,NULL,63,NULL,NULL,NULL);
INSERT INTO "tasks" VALUES('a5q24cg8yqfe',1,-1,'interpreter','running','python',1,0,NULL,NULL,NULL,NULL,NULL,'2026-11-16T15:10:27.809786Z','2026-11-16T15:10:27.850095Z',NULL,NULL,NULL,NULL,NULL,64,NULL,NULL,NULL);
INSERT INTO "tasks" VALUES('a5q24cg8yqfe',2,-1,'shared','running','python',1,0,NULL,NULL,NULL,NULL,NULL,'2026-11-16T15:10:27.809786Z','2026-11-16T15:10:27.841804Z',NULL,NULL,NULL,NULL,NULL,66,NULL,NULL,NULL);
INSERT INTO "tasks" VALUES('a5q24cg8yqfe',3,-1,'command','running','process',1,0,NULL,NULL,NULL,NULL,NULL,'2026-11-16T15:10:27.809786Z','2026-11-16T15:10:27.838900Z',NULL,NULL,NULL,NULL,NULL,65,NULL,NULL,NULL);
INSERT INTO "tasks" VALUES('a5q24cg8yqfe',4,-1,'after','pending','python',0,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,60,NULL,NULL,NULL);
INSERT INTO "tasks" VALUES('ft7jeb8y848r',0,-1,'broken','failed','python',2,0,NULL,NULL,NULL,'{"kind":"exception","message":"ValueError: no such table: orders","detail":{"type":"ValueError","message":"no such table: orders","frames":[{"file":"tasks.py","line":39,"function":"fail","source":"    raise ValueError(\"no such table: orders\")","caret":[4,45]}],"inputs":{}}}',1,'2026-11-16T15:10:26.525867Z','2026-11-16T15:10:26.527291Z','2026-11-16T15:10:26.547054Z',NULL,NULL,NULL,NULL,37,NULL,NULL,NULL);
INSERT INTO "tasks" VALUES('ft7jeb8y848r',1,-1,'after','skipped','python',0,0,'broken failed','broken',-1,NULL,NULL,NULL,NULL,'2026-11-16T15:10:26.548056Z',NULL,NULL,NULL,NULL,37,NULL,NULL,NULL);
INSERT INTO "tasks" VALUES('ft7jeb8y848r',2,-1,'tidy','success','python',1,0,NULL,NULL,NULL,NULL,0,'2026-11-16T15:10:26.548056Z','2026-11-16T15:10:26.557643Z','2026-11-16T15:10:26.573173Z',NULL,NULL,NULL,'{"rows":12,"attempt":1}',38,NULL,NULL,NULL);
INSERT INTO "tasks" VALUES('j5e5176k2qt1',0,-1,'work','running','python',1,0,NULL,NULL,NULL,NULL,NULL,'2026-11-16T15:10:29.651777Z','2026-11-16T15:10:29.661569Z',NULL,NULL,NULL,NULL,NULL,106,NULL,NULL,NULL);
INSERT INTO "tasks" VALUES('jar4ynms0y8x',0,-1,'look','success','python',1,0,NULL,NULL,NULL,NULL,0,'2026-11-16T15:10:30.048066Z','2026-11-16T15:10:30.058663Z','2026-11-16T15:10:30.083812Z',NULL,NULL,NULL,'{"rows":12,"attempt":1}',112,NULL,NULL,NULL);
INSERT INTO "tasks" VALUES('jar4ynms0y8x',1,-1,'many','skipped','python',0,0,'when tasks.look.output.rows gt 100: it is 12',NULL,NULL,NULL,NULL,NULL,NULL,'2026-11-16T15:10:30.084207Z',NULL,NULL,NULL,NULL,112,NULL,NULL,NULL);
INSERT INTO "tasks" VALUES('jar4ynms0y8x',2,-1,'few','success','python',1,0,NULL,NULL,NULL,NULL,0,'2026-11-16T15:10:30.084207Z','2026-11-16T15:10:30.087629Z','2026-11-16T15:10:30.116237Z',NULL,NULL,NULL,'{"rows":12,"attempt":1}',113,NULL,NULL,NULL);
INSERT INTO "tasks" VALUES('jar4ynms0y8x',3,-1,'after','running','python',1,0,NULL,NULL,NULL,NULL,NULL,'2026-11-16T15:10:30.116553Z','2026-11-16T15:10:30.118338Z',NULL,NULL,NULL,NULL,NULL,115,NULL,NULL,NULL);
INSERT INTO "tasks" VALUES('jcfmabbatfht',0,-1,'work','running','python',1,0,NULL,NULL,NULL,NULL,NULL,'2026-11-16T15:10:29.325497Z','2026-11-16T15:10:29.341729Z',NULL,NULL,NULL,NULL,NULL,99,NULL,NULL,NULL);
INSERT INTO "tasks" VALUES('jh268bzegy11',0,-1,'big','success','python',1,0,NULL,NULL,NULL,NULL,0,'2026-11-16T15:10:29.464983Z','2026-11-16T15:10:29.484957Z','2026-11-16T15:10:29.517761Z',NULL,'runs/jh268bzegy11/big.0.1.output.json',103001,NULL,102,NULL,NULL,NULL);
INSERT INTO "tasks" VALUES('jh268bzegy11',1,-1,'count','running','python',1,0,NULL,NULL,NULL,NULL,NULL,'2026-11-16T15:10:29.518179Z','2026-11-16T15:10:29.523481Z',NULL,NULL,NULL,NULL,NULL,103,NULL,NULL,NULL);
INSERT INTO "tasks" VALUES('k07zwfbtx0vs',0,-1,'look_up','success','python',1,0,NULL,NULL,NULL,NULL,0,'2026-11-16T15:10:26.520354Z','2026-11-16T15:10:26.523070Z','2026-11-16T15:10:26.529665Z',NULL,NULL,NULL,'{"rows":12,"attempt":1}',36,NULL,NULL,'f3716a564d41b855d2c57bc0747343e7319c33ed8283868c8fb184be2ad73394');
INSERT INTO "tasks" VALUES('nsdcxrmwyt2z',0,-1,'forked','cancelled','python',1,0,'cancelled by root',NULL,NULL,'{"kind":"cancelled","message":"cancelled by root","detail":null}',NULL,'2026-11-16T15:10:26.669295Z','2026-11-16T15:10:26.686293Z','2026-11-16T15:10:26.956247Z',NULL,NULL,NULL,NULL,48,NULL,NULL,NULL);
INSERT INTO "tasks" VALUES('nsdcxrmwyt2z',1,-1,'interpreter','cancelled','python',1,0,'cancelled by root',NULL,NULL,'{"kind":"cancelled","message":"cancelled by root","detail":null}',NULL,'2026-11-16T15:10:26.669295Z','2026-11-16T15:10:26.700492Z','2026-11-16T15:10:26.950914Z',NULL,NULL,NULL,NULL,47,NULL,NULL,NULL);
INSERT INTO "tasks" VALUES('nsdcxrmwyt2z',2,-1,'shared','cancelled','python',1,0,'cancelled by root',NULL,NULL,'{"kind":"cancelled","message":"cancelled by root","detail":null}',NULL,'2026-11-16T15:10:26.669295Z','2026-11-16T15:10:26.693750Z','2026-11-16T15:10:26.952018Z',NULL,NULL,NULL,NULL,48,NULL,NULL,NULL);
INSERT INTO "tasks" VALUES('nsdcxrmwyt2z',3,-1,'command','cancelled','process',1,0,'cancelled by root',NULL,NULL,'{"kind":"cancelled","message":"cancelled by root","detail":null}',NULL,'2026-11-16T15:10:26.669295Z','2026-11-16T15:10:26.684689Z','2026-11-16T15:10:26.950491Z',NULL,NULL,NULL,NULL,47,NULL,NULL,NULL);
INSERT INTO "tasks" VALUES('nsdcxrmwyt2z',4,-1,'after','cancelled','python',0,0,'cancelled by root',NULL,NULL,NULL,NULL,NULL,NULL,'2026-11-16T15:10:26.921872Z',NULL,NULL,NULL,NULL,46,NULL,NULL,NULL);
INSERT INTO "tasks" VALUES('vrymq7nhcy39',0,-1,'forked','running','python',1,0,NULL,NULL,NULL,NULL,NULL,'2026-11-16T15:10:27.942223Z','2026-11-16T15:10:27.953915Z',NULL,NULL,NULL,NULL,NULL,67,NULL,NULL,NULL);
INSERT INTO "tasks" VALUES('vrymq7nhcy39',1,-1,'interpreter','running','python',1,0,NULL,NULL,NULL,NULL,NULL,'2026-11-16T15:10:27.942223Z','2026-11-16T15:10:27.968308Z',NULL,NULL,NULL,NULL,NULL,68,NULL,NULL,NULL);
INSERT INTO "tasks" VALUES('vrymq7nhcy39',2,-1,'shared','running','python',1,0,NULL,NULL,NULL,NULL,NULL,'2026-11-16T15:10:27.942223Z','2026-11-16T15:10:28.011111Z',NULL,NULL,NULL,NULL,NULL,70,NULL,NULL,NULL);
INSERT INTO "tasks" VALUES('vrymq7nhcy39',3,-1,'command','running','process',1,0,NULL,NULL,NULL,NULL,NULL,'2026-11-16T15:10:27.942223Z','2026-11-16T15:10:27.950496Z',NULL,NULL,NULL,NULL,NULL,67,NULL,NULL,NULL);
INSERT INTO "tasks" VALUES('vrymq7nhcy39',4,-1,'after','pending','python',0,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,62,NULL,NULL,NULL);
INSERT INTO "tasks" VALUES('w5nsrhztj4zj',0,-1,'submit','running','python',1,0,NULL,NULL,NULL,NULL,NULL,'2026-11-16T15:10:29.119564Z','2026-11-16T15:10:29.131419Z',NULL,NULL,NULL,NULL,NULL,94,NULL,NULL,NULL);
INSERT INTO "tasks" VALUES('w5nsrhztj4zj',1,-1,'after','pending','python',0,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,93,NULL,NULL,NULL);
INSERT INTO "tasks" VALUES('x4dmeyxbj673',0,-1,'extract','success','python',1,0,NULL,NULL,NULL,NULL,0,'2026-11-16T15:10:26.119194Z','2026-11-16T15:10:26.185036Z','2026-11-16T15:10:26.218948Z',NULL,NULL,NULL,'{"rows":12,"attempt":1}',21,NULL,NULL,NULL);
INSERT INTO "tasks" VALUES('x4dmeyxbj673',1,-1,'transform','success','python',1,0,NULL,NULL,NULL,NULL,0,'2026-11-16T15:10:26.219274Z','2026-11-16T15:10:26.231617Z','2026-11-16T15:10:26.277659Z',NULL,NULL,NULL,'14',24,NULL,NULL,NULL);
INSERT INTO "tasks" VALUES('x4dmeyxbj673',2,-1,'load','success','process',1,0,NULL,NULL,NULL,NULL,0,'2026-11-16T15:10:26.278650Z','2026-11-16T15:10:26.295783Z','2026-11-16T15:10:26.317621Z',NULL,NULL,NULL,NULL,25,NULL,NULL,NULL);
INSERT INTO "tasks" VALUES('xvay97bf06g2',0,-1,'build','success','python',1,0,NULL,NULL,NULL,NULL,0,'2026-11-16T15:10:28.958705Z','2026-11-16T15:10:28.963570Z','2026-11-16T15:10:28.966226Z',NULL,NULL,NULL,'{"rows":12,"attempt":1}',91,NULL,NULL,NULL);
INSERT INTO "tasks" VALUES('xvay97bf06g2',1,-1,'release','running','approval',0,0,NULL,NULL,NULL,NULL,NULL,'2026-11-16T15:10:28.966451Z','2026-11-16T15:10:28.966451Z',NULL,NULL,NULL,NULL,NULL,91,NULL,NULL,NULL);
INSERT INTO "tasks" VALUES('xvay97bf06g2',2,-1,'publish','pending','python',0,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,90,NULL,NULL,NULL);
INSERT INTO "tasks" VALUES('y7thk0stncx3',0,-1,'work','running','python',1,0,NULL,NULL,NULL,NULL,NULL,'2026-11-16T15:10:29.862164Z','2026-11-16T15:10:29.875293Z',NULL,NULL,NULL,NULL,NULL,109,NULL,NULL,NULL);
INSERT INTO "tasks" VALUES('y7ze2gw6qxeh',0,-1,'work','running','python',1,0,NULL,NULL,NULL,NULL,NULL,'2026-11-16T15:10:28.357907Z','2026-11-16T15:10:28.369545Z',NULL,NULL,NULL,NULL,NULL,78,NULL,NULL,NULL);
INSERT INTO "tasks" VALUES('y7ze2gw6qxeh',1,-1,'after','pending','python',0,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,76,NULL,NULL,NULL);
INSERT INTO "tasks" VALUES('z3zpnnpvtb7h',0,-1,'flaky','pending','python',1,0,NULL,NULL,NULL,'{"kind":"exception","message":"ValueError: not yet","detail":{"type":"ValueError","message":"not yet","frames":[{"file":"tasks.py","line":45,"function":"fail_once","source":"        raise ValueError(\"not yet\")","caret":[8,35]}],"inputs":{}}}',1,'2026-11-16T15:10:28.786388Z','2026-11-16T15:10:28.799270Z','2026-11-16T15:10:28.837421Z','2026-11-16T15:10:58.838523Z',NULL,NULL,NULL,88,NULL,NULL,NULL);
INSERT INTO "tasks" VALUES('z4tvdjxta20v',0,-1,'extract','success','python',1,0,NULL,NULL,NULL,NULL,0,'2026-11-16T15:10:27.561416Z','2026-11-16T15:10:27.571637Z','2026-11-16T15:10:27.602457Z',NULL,NULL,NULL,'{"rows":12,"attempt":1}',52,NULL,NULL,NULL);
INSERT INTO "tasks" VALUES('z4tvdjxta20v',1,-1,'transform','success','python',1,0,NULL,NULL,NULL,NULL,0,'2026-11-16T15:10:27.607969Z','2026-11-16T15:10:27.621907Z','2026-11-16T15:10:27.642642Z',NULL,NULL,NULL,'14',54,NULL,NULL,NULL);
INSERT INTO "tasks" VALUES('z4tvdjxta20v',2,-1,'load','success','process',1,0,NULL,NULL,NULL,NULL,0,'2026-11-16T15:10:27.642963Z','2026-11-16T15:10:27.650889Z','2026-11-16T15:10:27.658601Z',NULL,NULL,NULL,NULL,56,NULL,NULL,NULL);
INSERT INTO "tasks" VALUES('z6hrt8wwq5wj',0,-1,'each','running','python',0,0,NULL,NULL,NULL,NULL,NULL,'2026-11-16T15:10:28.526164Z','2026-11-16T15:10:28.526164Z',NULL,NULL,NULL,NULL,NULL,80,8,NULL,NULL);
INSERT INTO "tasks" VALUES('z6hrt8wwq5wj',0,0,'each','success','python',1,0,NULL,NULL,NULL,NULL,0,'2026-11-16T15:10:28.526164Z','2026-11-16T15:10:28.539364Z','2026-11-16T15:10:28.649745Z',NULL,NULL,NULL,'0',82,NULL,'0',NULL);
INSERT INTO "tasks" VALUES('z6hrt8wwq5wj',0,1,'each','running','python',1,0,NULL,NULL,NULL,NULL,NULL,'2026-11-16T15:10:28.526164Z','2026-11-16T15:10:28.544754Z',NULL,NULL,NULL,NULL,NULL,83,NULL,'1',NULL);
INSERT INTO "tasks" VALUES('z6hrt8wwq5wj',0,2,'each','success','python',1,0,NULL,NULL,NULL,NULL,0,'2026-11-16T15:10:28.526164Z','2026-11-16T15:10:28.543580Z','2026-11-16T15:10:28.599784Z',NULL,NULL,NULL,'20',81,NULL,'2',NULL);
INSERT INTO "tasks" VALUES('z6hrt8wwq5wj',0,3,'each','running','python',1,0,NULL,NULL,NULL,NULL,NULL,'2026-11-16T15:10:28.600864Z','2026-11-16T15:10:28.609901Z',NULL,NULL,NULL,NULL,NULL,85,NULL,'3',NULL);
INSERT INTO "tasks" VALUES('z6hrt8wwq5wj',0,4,'each','success','python',1,0,NULL,NULL,NULL,NULL,0,'2026-11-16T15:10:28.650924Z','2026-11-16T15:10:28.673530Z','2026-11-16T15:10:28.714490Z',NULL,NULL,NULL,'40',84,NULL,'4',NULL);
INSERT INTO "tasks" VALUES('z6hrt8wwq5wj',0,5,'each','running','python',1,0,NULL,NULL,NULL,NULL,NULL,'2026-11-16T15:10:28.721558Z','2026-11-16T15:10:28.723556Z',NULL,NULL,NULL,NULL,NULL,88,NULL,'5',NULL);
INSERT INTO "tasks" VALUES('z6hrt8wwq5wj',0,6,'each','pending','python',0,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,80,NULL,'6',NULL);
INSERT INTO "tasks" VALUES('z6hrt8wwq5wj',0,7,'each','pending','python',0,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,80,NULL,'7',NULL);
INSERT INTO "tasks" VALUES('z6hrt8wwq5wj',1,-1,'total','pending','python',0,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,80,NULL,NULL,NULL);
INSERT INTO "tasks" VALUES('zw67ackg7zee',0,-1,'forked','running','python',1,0,NULL,NULL,NULL,NULL,NULL,'2026-11-16T15:10:28.169888Z','2026-11-16T15:10:28.191797Z',NULL,NULL,NULL,NULL,NULL,72,NULL,NULL,NULL);
INSERT INTO "tasks" VALUES('zw67ackg7zee',1,-1,'interpreter','running','python',1,0,NULL,NULL,NULL,NULL,NULL,'2026-11-16T15:10:28.169888Z','2026-11-16T15:10:28.225960Z',NULL,NULL,NULL,NULL,NULL,74,NULL,NULL,NULL);
INSERT INTO "tasks" VALUES('zw67ackg7zee',2,-1,'shared','running','python',1,0,NULL,NULL,NULL,NULL,NULL,'2026-11-16T15:10:28.169888Z','2026-11-16T15:10:28.210266Z',NULL,NULL,NULL,NULL,NULL,77,NULL,NULL,NULL);
INSERT INTO "tasks" VALUES('zw67ackg7zee',3,-1,'command','running','process',1,0,NULL,NULL,NULL,NULL,NULL,'2026-11-16T15:10:28.169888Z','2026-11-16T15:10:28.210850Z',NULL,NULL,NULL,NULL,NULL,73,NULL,NULL,NULL);
INSERT INTO "tasks" VALUES('zw67ackg7zee',4,-1,'after','pending','python',0,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,71,NULL,NULL,NULL);
CREATE TABLE tokens (
    id         TEXT NOT NULL PRIMARY KEY,
    name       TEXT NOT NULL,
    role       TEXT NOT NULL,
    digest     TEXT NOT NULL UNIQUE,
    created_at TEXT NOT NULL,
    revoked_at TEXT
) STRICT, WITHOUT ROWID;
CREATE TABLE versions (
    id       TEXT NOT NULL PRIMARY KEY,
    workflow TEXT NOT NULL,
    root     TEXT NOT NULL,
    source   TEXT,
    document TEXT NOT NULL
, saved_at TEXT, saved INTEGER NOT NULL DEFAULT 0) STRICT, WITHOUT ROWID;
INSERT INTO "versions" VALUES('175a38f1d493e3c6','parent','@ROOT@','@ROOT@/parent.yaml','{"name":"parent","tasks":[{"name":"child","executor":"workflow","action":{"workflow":{"name":"sheltered"}},"inputs":[["label",{"const":"one"}]]},{"name":"after","executor":"python","action":{"python":{"file":"tasks.py","function":"quick"}},"depends_on":["child"]}]}','2026-11-16T15:10:25.794478Z',10);
INSERT INTO "versions" VALUES('208a90089810415e','holding','@ROOT@','@ROOT@/holding.yaml','{"name":"holding","tasks":[{"name":"forked","executor":"python","action":{"python":{"file":"tasks.py","function":"hold"}},"retries":2,"retry_delay":0.2},{"name":"interpreter","executor":"python","action":{"python":{"file":"tasks.py","function":"hold"}},"retries":2,"retry_delay":0.2,"isolation":"interpreter"},{"name":"shared","executor":"python","action":{"python":{"file":"tasks.py","function":"hold"}},"retries":2,"retry_delay":0.2,"isolation":"shared"},{"name":"command","executor":"process","action":{"command":[{"const":"sh"},{"const":"-c"},{"const":"echo \"start $ORK_RUN_ID $ORK_TASK_NAME $ORK_ATTEMPT\" >> ledger.txt; until [ -e release ]; do sleep 0.05; done"}]},"retries":2,"retry_delay":0.2},{"name":"after","executor":"python","action":{"python":{"file":"tasks.py","function":"quick"}},"depends_on":["forked","interpreter","shared","command"],"retries":2,"retry_delay":0.2}]}','2026-11-16T15:10:25.794478Z',7);
INSERT INTO "versions" VALUES('2e2847d0ecf58bd6','branching','@ROOT@','@ROOT@/branching.yaml','{"name":"branching","tasks":[{"name":"look","executor":"python","action":{"python":{"file":"tasks.py","function":"quick"}}},{"name":"many","executor":"python","action":{"python":{"file":"tasks.py","function":"quick"}},"depends_on":["look"],"when":[[["tasks","look","output","rows"],"gt",100]]},{"name":"few","executor":"python","action":{"python":{"file":"tasks.py","function":"quick"}},"depends_on":["look"],"when":[[["tasks","look","output","rows"],"le",100]]},{"name":"after","executor":"python","action":{"python":{"file":"tasks.py","function":"hold"}},"depends_on":["many","few"],"retries":2,"retry_delay":0.2,"run_if":"any_success"}]}','2026-11-16T15:10:25.794478Z',2);
INSERT INTO "versions" VALUES('42fdb07ebc473ff6','cached','@ROOT@','@ROOT@/cached.yaml','{"name":"cached","tasks":[{"name":"look_up","executor":"python","action":{"python":{"file":"tasks.py","function":"quick"}},"cache":315360000.0}]}','2026-11-16T15:10:25.794478Z',3);
INSERT INTO "versions" VALUES('501ed5feeff35b2a','sheltered','@ROOT@','@ROOT@/sheltered.yaml','{"name":"sheltered","params":[{"name":"label","type":"str"}],"tasks":[{"name":"work","executor":"python","action":{"python":{"file":"tasks.py","function":"hold"}},"retries":2,"retry_delay":0.2}]}','2026-11-16T15:10:25.794478Z',11);
INSERT INTO "versions" VALUES('5817dd71d902b7e5','asking','@ROOT@','@ROOT@/asking.yaml','{"name":"asking","tasks":[{"name":"build","executor":"python","action":{"python":{"file":"tasks.py","function":"quick"}}},{"name":"release","executor":"approval","action":{"approval":{"message":"Publish?"}},"depends_on":["build"],"timeout":315360000.0},{"name":"publish","executor":"python","action":{"python":{"file":"tasks.py","function":"quick"}},"depends_on":["release"]}]}','2026-11-16T15:10:25.794478Z',1);
INSERT INTO "versions" VALUES('5f5d2f3b5a2e7901','late','@ROOT@','@ROOT@/late.yaml','{"name":"late","tasks":[{"name":"work","executor":"python","action":{"python":{"file":"tasks.py","function":"hold_until_late"}}},{"name":"after","executor":"python","action":{"python":{"file":"tasks.py","function":"add"}},"depends_on":["work"],"inputs":[["first",{"ref":["tasks","work","output"]}],["second",{"const":"!"}]]}]}','2026-11-16T15:10:25.794478Z',9);
INSERT INTO "versions" VALUES('6f04fc7e931c1ca9','sample','@ROOT@','@ROOT@/sample.yaml','{"name":"sample","params":[{"name":"second","type":"int","required":false,"default":2}],"schedule":{"cron":"0 2 * * *","timezone":"Europe/Prague","enabled":false},"tasks":[{"name":"extract","executor":"python","action":{"python":{"file":"tasks.py","function":"quick"}}},{"name":"transform","executor":"python","action":{"python":{"file":"tasks.py","function":"add"}},"depends_on":["extract"],"inputs":[["first",{"ref":["tasks","extract","output","rows"]}]]},{"name":"load","executor":"process","action":{"command":[{"const":"sh"},{"const":"-c"},{"const":"echo \"start $ORK_RUN_ID $ORK_TASK_NAME $ORK_ATTEMPT\" >> ledger.txt"}]},"depends_on":["transform"]}]}','2026-11-16T15:10:25.794478Z',13);
INSERT INTO "versions" VALUES('875b6d5f05e31b2a','failing','@ROOT@','@ROOT@/failing.yaml','{"name":"failing","tasks":[{"name":"broken","executor":"python","action":{"python":{"file":"tasks.py","function":"fail"}},"retries":1,"retry_delay":0.1},{"name":"after","executor":"python","action":{"python":{"file":"tasks.py","function":"quick"}},"depends_on":["broken"]},{"name":"tidy","executor":"python","action":{"python":{"file":"tasks.py","function":"quick"}},"depends_on":["broken"],"run_if":"all_done"}]}','2026-11-16T15:10:25.794478Z',5);
INSERT INTO "versions" VALUES('8f527249f6f9a5de','single','@ROOT@','@ROOT@/single.yaml','{"name":"single","max_active_runs":1,"tasks":[{"name":"work","executor":"python","action":{"python":{"file":"tasks.py","function":"hold"}},"retries":2,"retry_delay":0.2,"pool":"narrow"}]}','2026-11-16T15:10:25.794478Z',15);
INSERT INTO "versions" VALUES('9f3fe16aba6254bc','fan','@ROOT@','@ROOT@/fan.yaml','{"name":"fan","tasks":[{"name":"each","executor":"python","action":{"python":{"file":"tasks.py","function":"hold_odd"}},"retries":2,"retry_delay":0.2,"foreach":{"const":[0,1,2,3,4,5,6,7]},"concurrency":3},{"name":"total","executor":"python","action":{"python":{"file":"tasks.py","function":"quick"}},"depends_on":["each"]}]}','2026-11-16T15:10:25.794478Z',6);
INSERT INTO "versions" VALUES('b0c2645a836dffbb','large','@ROOT@','@ROOT@/large.yaml','{"name":"large","tasks":[{"name":"big","executor":"python","action":{"python":{"file":"tasks.py","function":"big"}}},{"name":"count","executor":"python","action":{"python":{"file":"tasks.py","function":"count"}},"depends_on":["big"],"inputs":[["big",{"ref":["tasks","big","output"]}]],"retries":2,"retry_delay":0.2}]}','2026-11-16T15:10:25.794478Z',8);
INSERT INTO "versions" VALUES('c2c57a1a6972ea04','deferring','@ROOT@','@ROOT@/deferring.yaml','{"name":"deferring","tasks":[{"name":"submit","executor":"python","action":{"python":{"file":"tasks.py","function":"submit"}},"retries":2,"retry_delay":0.2},{"name":"after","executor":"python","action":{"python":{"file":"tasks.py","function":"quick"}},"depends_on":["submit"]}]}','2026-11-16T15:10:25.794478Z',4);
INSERT INTO "versions" VALUES('e28689228e16f4da','retrying','@ROOT@','@ROOT@/retrying.yaml','{"name":"retrying","tasks":[{"name":"flaky","executor":"python","action":{"python":{"file":"tasks.py","function":"fail_once"}},"retries":3,"retry_delay":30.0}]}','2026-11-16T15:10:25.794478Z',12);
INSERT INTO "versions" VALUES('f05362c126252d6e','stubborn','@ROOT@','@ROOT@/stubborn.yaml','{"name":"stubborn","tasks":[{"name":"work","executor":"python","action":{"python":{"file":"tasks.py","function":"stubborn"}},"retries":2,"retry_delay":0.2}]}','2026-11-16T15:10:25.794478Z',16);
CREATE TABLE workflows (
    name            TEXT NOT NULL PRIMARY KEY,
    version         TEXT NOT NULL,
    enabled         INTEGER NOT NULL,
    deployed_at     TEXT NOT NULL,
    origin          TEXT,
    schedule        TEXT,
    max_active_runs INTEGER
, fires INTEGER NOT NULL DEFAULT 0, next_fire TEXT) STRICT, WITHOUT ROWID;
INSERT INTO "workflows" VALUES('asking','5817dd71d902b7e5',1,'2026-11-16T15:10:25.794478Z','@ROOT@/asking.yaml',NULL,NULL,0,NULL);
INSERT INTO "workflows" VALUES('branching','2e2847d0ecf58bd6',1,'2026-11-16T15:10:25.794478Z','@ROOT@/branching.yaml',NULL,NULL,0,NULL);
INSERT INTO "workflows" VALUES('cached','42fdb07ebc473ff6',1,'2026-11-16T15:10:25.794478Z','@ROOT@/cached.yaml',NULL,NULL,0,NULL);
INSERT INTO "workflows" VALUES('deferring','c2c57a1a6972ea04',1,'2026-11-16T15:10:25.794478Z','@ROOT@/deferring.yaml',NULL,NULL,0,NULL);
INSERT INTO "workflows" VALUES('failing','875b6d5f05e31b2a',1,'2026-11-16T15:10:25.794478Z','@ROOT@/failing.yaml',NULL,NULL,0,NULL);
INSERT INTO "workflows" VALUES('fan','9f3fe16aba6254bc',1,'2026-11-16T15:10:25.794478Z','@ROOT@/fan.yaml',NULL,NULL,0,NULL);
INSERT INTO "workflows" VALUES('holding','208a90089810415e',1,'2026-11-16T15:10:25.794478Z','@ROOT@/holding.yaml',NULL,NULL,0,NULL);
INSERT INTO "workflows" VALUES('large','b0c2645a836dffbb',1,'2026-11-16T15:10:25.794478Z','@ROOT@/large.yaml',NULL,NULL,0,NULL);
INSERT INTO "workflows" VALUES('late','5f5d2f3b5a2e7901',1,'2026-11-16T15:10:25.794478Z','@ROOT@/late.yaml',NULL,NULL,0,NULL);
INSERT INTO "workflows" VALUES('parent','175a38f1d493e3c6',1,'2026-11-16T15:10:25.794478Z','@ROOT@/parent.yaml',NULL,NULL,0,NULL);
INSERT INTO "workflows" VALUES('retrying','e28689228e16f4da',1,'2026-11-16T15:10:25.794478Z','@ROOT@/retrying.yaml',NULL,NULL,0,NULL);
INSERT INTO "workflows" VALUES('sample','6f04fc7e931c1ca9',1,'2026-11-16T15:10:25.794478Z','@ROOT@/sample.yaml','["0 2 * * *","Europe/Prague","none",false]',NULL,0,NULL);
INSERT INTO "workflows" VALUES('sheltered','501ed5feeff35b2a',1,'2026-11-16T15:10:25.794478Z','@ROOT@/sheltered.yaml',NULL,NULL,0,NULL);
INSERT INTO "workflows" VALUES('single','8f527249f6f9a5de',1,'2026-11-16T15:10:25.794478Z','@ROOT@/single.yaml',NULL,1,0,NULL);
INSERT INTO "workflows" VALUES('stubborn','f05362c126252d6e',1,'2026-11-16T15:10:25.794478Z','@ROOT@/stubborn.yaml',NULL,NULL,0,NULL);
CREATE UNIQUE INDEX runs_key ON runs (workflow, key) WHERE key IS NOT NULL;
CREATE UNIQUE INDEX runs_slot ON runs (workflow, scheduled_for)
    WHERE scheduled_for IS NOT NULL AND trigger IN ('schedule', 'backfill');
CREATE INDEX runs_waiting ON runs
    (priority DESC, created_at, id, workflow, status, cancel_requested_at, attention, owner)
    WHERE attention = 1 AND owner IS NULL;
CREATE INDEX runs_owned ON runs (owner) WHERE owner IS NOT NULL;
CREATE INDEX runs_occupying ON runs (workflow)
    WHERE status IN ('running', 'paused') OR (status = 'pending' AND owner IS NOT NULL);
CREATE INDEX runs_by_status ON runs (status, created_at, id);
CREATE INDEX runs_by_workflow ON runs (workflow, status, created_at, id);
CREATE INDEX tasks_changed ON tasks (run_id, changed);
CREATE INDEX commands_waiting ON commands (run_id, id) WHERE done_at IS NULL;
CREATE INDEX tasks_cached ON tasks (cache_key, finished_at) WHERE cache_key IS NOT NULL AND status = 'success';
CREATE INDEX runs_changed ON runs (changed);
CREATE INDEX versions_of_workflow ON versions (workflow, saved DESC);
CREATE INDEX workflows_due ON workflows (next_fire) WHERE fires = 1;
CREATE INDEX alerts_of_run ON alerts (run_id, id) WHERE run_id IS NOT NULL;
CREATE INDEX alerts_due ON alerts (due_at, id) WHERE due_at IS NOT NULL;
CREATE INDEX commands_done ON commands (run_id) WHERE done_at IS NOT NULL;
CREATE INDEX attempts_active ON attempts (run_id, executor, pool, is_waiting, status)
    WHERE status IN ('dispatched', 'running');
CREATE INDEX alerts_unsent ON alerts (id) WHERE error IS NOT NULL;
CREATE INDEX alerts_told ON alerts (raised_at) WHERE run_id IS NULL AND due_at IS NULL;
DELETE FROM "sqlite_sequence";
INSERT INTO "sqlite_sequence" VALUES('alerts',4);
INSERT INTO "sqlite_sequence" VALUES('audit',22);
INSERT INTO "sqlite_sequence" VALUES('commands',6);
COMMIT;
