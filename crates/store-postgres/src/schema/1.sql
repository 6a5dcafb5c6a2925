-- Format 1 of the store. `{schema}` is replaced. Runs in one transaction.
--
-- Names are ASCII and compared byte by byte, whatever the database's collation is, and stays so when the system's
-- collations change. What people and programs write (claims, states of runs) is bytes: no encoding of the database
-- can refuse or change it.

CREATE TABLE {schema}.taffrail_format (version int4 NOT NULL);
INSERT INTO {schema}.taffrail_format VALUES (1);

-- A row is changed at every append: half of each page is left free, so that its next version fits beside it and no
-- index has to know.
CREATE TABLE {schema}.threads (
    name text COLLATE "C" PRIMARY KEY,
    no int8 NOT NULL GENERATED ALWAYS AS IDENTITY,
    head int8 NOT NULL DEFAULT 0,
    first int8 NOT NULL DEFAULT 1,
    bytes int8 NOT NULL DEFAULT 0,
    stored int8 NOT NULL DEFAULT 0,
    updated int8 NOT NULL DEFAULT 0,
    trimmed_records int8 NOT NULL DEFAULT 0,
    trimmed_bytes int8 NOT NULL DEFAULT 0
) WITH (fillfactor = 50);

-- `run` is null in the usual case that it is named as its thread. `bytes` is compressed already, and stays in the row
-- while that fits a page: out of line it would be rows and index entries of two kilobytes each.
CREATE TABLE {schema}.blocks (
    thread int8 NOT NULL,
    first int8 NOT NULL,
    ts int8 NOT NULL,
    count int4 NOT NULL,
    raw int4 NOT NULL,
    codec int2 NOT NULL,
    run text COLLATE "C",
    bytes bytea NOT NULL,
    PRIMARY KEY (thread, first)
) WITH (toast_tuple_target = 8160);
ALTER TABLE {schema}.blocks ALTER bytes SET STORAGE EXTERNAL;
CREATE INDEX blocks_of_run ON {schema}.blocks (thread, run, first) WHERE run IS NOT NULL;

CREATE TABLE {schema}.runs (
    run text COLLATE "C" PRIMARY KEY,
    no int8 NOT NULL GENERATED ALWAYS AS IDENTITY,
    thread text COLLATE "C" NOT NULL,
    status text COLLATE "C" NOT NULL,
    fold bytea NOT NULL
) WITH (fillfactor = 50, toast_tuple_target = 4080);
CREATE UNIQUE INDEX runs_by_number ON {schema}.runs (no);
CREATE INDEX runs_of_thread ON {schema}.runs (thread, no);
CREATE INDEX runs_in_status ON {schema}.runs (status, no);

-- Found by a digest: keys may be longer than an index takes.
CREATE TABLE {schema}.claims (
    digest bytea PRIMARY KEY,
    key bytea NOT NULL,
    value bytea NOT NULL,
    run text COLLATE "C"
);
CREATE INDEX claims_of_run ON {schema}.claims (run);

CREATE TABLE {schema}.holders (
    name bytea PRIMARY KEY,
    beats int8 NOT NULL DEFAULT 0,
    revoked boolean NOT NULL DEFAULT false
) WITH (fillfactor = 50);
CREATE TABLE {schema}.leases (
    key bytea PRIMARY KEY,
    holder bytea NOT NULL
);
CREATE INDEX leases_of_holder ON {schema}.leases (holder);

-- Applies appends in their order, all in the transaction of the call.
--
-- t_*: the threads, ascending by name, each once. `t_fresh` are those that may have to be made. The appends of thread i
-- are a_*[t_from[i] .. t_to[i]], in their order; `t_expected` is where they begin if each goes on where the one before
-- ends, else -1; then come the head, and the sums, if all of them are stored.
-- a_*: the appends; `a_order` is the order of the calls, over all threads. b_*: blocks. r_*: states of runs, in order.
-- `b_append` and `r_append` tell whose they are.
--
-- Answers nothing when everything was stored. Else for each append: 0 stored; 1 conflict, and the head; 2 claimed, and
-- the value.
--
-- Locks are taken in one order by all callers, so that they wait for each other and never in a circle: keys of claims,
-- threads that are made, threads that are there, runs; each kind in ascending order.
--
-- Who floods a thread would win every race for its numbers: the answer to the winner comes before that to the loser, and
-- so does what each sends next. So the loser of a first try reserves its thread, for `again`, its second one, which
-- gives it back. Others let a reservation go first, but wait for no more than ten milliseconds: its owner may be gone.
--
-- Small batches, the usual case, are loops over the plainest statements: to start a statement that takes a whole batch
-- costs as much as ten of those.
CREATE FUNCTION {schema}.append(
    again boolean,
    t_name text[], t_fresh text[], t_from int4[], t_to int4[], t_expected int8[], t_head int8[], t_raw int8[],
    t_stored int8[], t_updated int8[],
    a_thread int4[], a_order int4[], a_expected int8[], a_head int8[], a_raw int8[], a_stored int8[], a_updated int8[],
    a_key bytea[], a_value bytea[], a_claimant text[],
    b_append int4[], b_first int8[], b_count int4[], b_ts int8[], b_run text[], b_codec int2[], b_raw int4[],
    b_bytes bytea[],
    r_append int4[], r_run text[], r_thread text[], r_status text[], r_fold bytea[],
    OUT answers int2[], OUT heads int8[], OUT claimed bytea[]
) LANGUAGE plpgsql AS $$
DECLARE
    appends CONSTANT int4 := cardinality(a_thread);
    threads CONSTANT int4 := cardinality(t_name);
    few CONSTANT int4 := 6;
    made text[];
    numbers int8[] := array_fill(0::int8, ARRAY[threads]);
    number int8;
    now_at int8;
    key_lock int4;
    j int4;
    t int4;
    taken bytea;
    patience int4;
BEGIN
    IF a_key IS NOT NULL THEN
        FOR key_lock IN
            SELECT DISTINCT hashtext(encode(k, 'hex')) FROM unnest(a_key) k WHERE k IS NOT NULL ORDER BY 1
        LOOP
            PERFORM pg_advisory_xact_lock(1952870002, key_lock);
        END LOOP;
    END IF;

    IF t_fresh IS NOT NULL THEN
        WITH new AS (
            INSERT INTO {schema}.threads (name)
            SELECT f FROM unnest(t_fresh) f WHERE NOT EXISTS (SELECT FROM {schema}.threads h WHERE h.name = f)
            ORDER BY f COLLATE "C"
            ON CONFLICT DO NOTHING
            RETURNING name
        )
        SELECT array_agg(name) INTO made FROM new;
    END IF;

    IF a_key IS NOT NULL THEN
        -- Whether a claim is free may depend on another thread: all are looked at before any is changed.
        answers := array_fill(0::int2, ARRAY[appends]);
        heads := array_fill(0::int8, ARRAY[appends]);
        claimed := array_fill(NULL::bytea, ARRAY[appends]);
        FOR i IN 1 .. threads LOOP
            SELECT h.no, h.head INTO number, now_at FROM {schema}.threads h WHERE h.name = t_name[i] FOR NO KEY UPDATE;
            numbers[i] := number;
            t_head[i] := coalesce(now_at, 0);
            t_raw[i] := 0;
            t_stored[i] := 0;
            t_updated[i] := NULL;
        END LOOP;
        FOREACH j IN ARRAY a_order LOOP
            t := a_thread[j];
            IF a_key[j] IS NOT NULL THEN
                SELECT c.value INTO taken FROM {schema}.claims c WHERE c.digest = sha256(a_key[j]);
                IF FOUND THEN
                    answers[j] := 2;
                    claimed[j] := taken;
                    CONTINUE;
                END IF;
            END IF;
            IF t_head[t] <> a_expected[j] THEN
                answers[j] := 1;
                heads[j] := t_head[t];
                CONTINUE;
            END IF;
            IF a_key[j] IS NOT NULL THEN
                INSERT INTO {schema}.claims (digest, key, value, run)
                VALUES (sha256(a_key[j]), a_key[j], a_value[j], a_claimant[j]);
            END IF;
            t_head[t] := a_head[j];
            t_raw[t] := t_raw[t] + a_raw[j];
            t_stored[t] := t_stored[t] + a_stored[j];
            t_updated[t] := coalesce(a_updated[j], t_updated[t]);
        END LOOP;
        FOR i IN 1 .. threads LOOP
            IF t_updated[i] IS NOT NULL THEN
                UPDATE {schema}.threads h
                SET head = t_head[i], bytes = h.bytes + t_raw[i], stored = h.stored + t_stored[i], updated = t_updated[i]
                WHERE h.name = t_name[i];
            END IF;
        END LOOP;
    ELSE
        IF threads <= few THEN
            FOR i IN 1 .. threads LOOP
                patience := 10;
                WHILE patience > 0 AND NOT pg_try_advisory_xact_lock_shared(1952870003, hashtext(t_name[i])) LOOP
                    PERFORM pg_sleep(0.001);
                    patience := patience - 1;
                END LOOP;
            END LOOP;
        END IF;
        FOR i IN 1 .. threads LOOP
            UPDATE {schema}.threads h
            SET head = t_head[i], bytes = h.bytes + t_raw[i], stored = h.stored + t_stored[i],
                updated = coalesce(t_updated[i], h.updated)
            WHERE h.name = t_name[i] AND h.head = t_expected[i]
            RETURNING h.no INTO number;
            IF FOUND THEN
                numbers[i] := number;
                CONTINUE;
            END IF;
            -- Somebody else wrote, or the appends do not go on from each other: one after the other.
            IF answers IS NULL THEN
                answers := array_fill(0::int2, ARRAY[appends]);
                heads := array_fill(0::int8, ARRAY[appends]);
                claimed := array_fill(NULL::bytea, ARRAY[appends]);
            END IF;
            IF threads <= few AND NOT again THEN
                PERFORM pg_try_advisory_lock(1952870003, hashtext(t_name[i]));
            END IF;
            SELECT h.no, h.head INTO number, now_at FROM {schema}.threads h WHERE h.name = t_name[i] FOR NO KEY UPDATE;
            numbers[i] := number;
            now_at := coalesce(now_at, 0);
            t_raw[i] := 0;
            t_stored[i] := 0;
            t_updated[i] := NULL;
            FOR j IN t_from[i] .. t_to[i] LOOP
                IF a_expected[j] <> now_at THEN
                    answers[j] := 1;
                    heads[j] := now_at;
                    CONTINUE;
                END IF;
                now_at := a_head[j];
                t_raw[i] := t_raw[i] + a_raw[j];
                t_stored[i] := t_stored[i] + a_stored[j];
                t_updated[i] := coalesce(a_updated[j], t_updated[i]);
            END LOOP;
            IF t_updated[i] IS NOT NULL THEN
                UPDATE {schema}.threads h
                SET head = now_at, bytes = h.bytes + t_raw[i], stored = h.stored + t_stored[i], updated = t_updated[i]
                WHERE h.name = t_name[i];
            END IF;
        END LOOP;
    END IF;

    IF cardinality(b_first) <= few THEN
        FOR i IN 1 .. cardinality(b_first) LOOP
            CONTINUE WHEN answers[b_append[i]] <> 0;
            INSERT INTO {schema}.blocks (thread, first, ts, count, raw, codec, run, bytes)
            VALUES (numbers[a_thread[b_append[i]]], b_first[i], b_ts[i], b_count[i], b_raw[i], b_codec[i], b_run[i],
                b_bytes[i]);
        END LOOP;
    ELSE
        INSERT INTO {schema}.blocks (thread, first, ts, count, raw, codec, run, bytes)
        SELECT numbers[a_thread[b.a]], b.first, b.ts, b.count, b.raw, b.codec, b.run, b.bytes
        FROM unnest(b_append, b_first, b_ts, b_count, b_raw, b_codec, b_run, b_bytes)
            AS b (a, first, ts, count, raw, codec, run, bytes)
        WHERE answers IS NULL OR answers[b.a] = 0;
    END IF;

    IF cardinality(r_run) <= few THEN
        FOR i IN 1 .. cardinality(r_run) LOOP
            CONTINUE WHEN answers[r_append[i]] <> 0;
            UPDATE {schema}.runs known SET status = r_status[i], fold = r_fold[i] WHERE known.run = r_run[i];
            IF NOT FOUND THEN
                INSERT INTO {schema}.runs (run, thread, status, fold)
                VALUES (r_run[i], r_thread[i], r_status[i], r_fold[i])
                ON CONFLICT (run) DO UPDATE SET status = excluded.status, fold = excluded.fold;
            END IF;
        END LOOP;
    ELSE
        WITH wanted AS MATERIALIZED (
            SELECT DISTINCT ON (r.run) r.run, r.thread, r.status, r.fold, min(r.i) OVER (PARTITION BY r.run) AS since
            FROM unnest(r_append, r_run, r_thread, r_status, r_fold) WITH ORDINALITY
                AS r (a, run, thread, status, fold, i)
            WHERE answers IS NULL OR answers[r.a] = 0
            ORDER BY r.run, r.i DESC
        ), changed AS (
            UPDATE {schema}.runs known SET status = wanted.status, fold = wanted.fold
            FROM wanted WHERE known.run = wanted.run
            RETURNING known.run
        )
        INSERT INTO {schema}.runs (run, thread, status, fold)
        SELECT run, thread, status, fold FROM wanted
        WHERE NOT EXISTS (SELECT FROM changed WHERE changed.run = wanted.run)
        ORDER BY since
        ON CONFLICT (run) DO UPDATE SET status = excluded.status, fold = excluded.fold;
    END IF;

    IF made IS NOT NULL THEN
        -- A conflict or a taken claim makes no thread.
        DELETE FROM {schema}.threads h WHERE h.name = ANY (made) AND h.head = 0;
    END IF;
    IF again THEN
        PERFORM pg_advisory_unlock_all();
    END IF;
    IF NOT 0 = ANY (answers) THEN
        -- There is nothing to wait for the disk for.
        PERFORM set_config('synchronous_commit', 'off', true);
    END IF;
END $$;

-- Reads blocks of a thread with a record from `wanted` to `until`, ascending or `backwards`, until `most` bytes of
-- lines were read. `own`: only blocks of the run that is named as the thread; else, unless it is null, only of `of_run`.
CREATE FUNCTION {schema}.read(
    thread_name text, wanted int8, until int8, own boolean, of_run text, most int8, backwards boolean,
    OUT first int8, OUT count int4, OUT ts int8, OUT run text, OUT codec int2, OUT raw int4, OUT bytes bytea
) RETURNS SETOF record LANGUAGE plpgsql STABLE AS $$
#variable_conflict use_column
DECLARE
    thread_no int8;
    start int8;
    size int8 := 0;
BEGIN
    SELECT h.no INTO thread_no FROM {schema}.threads h WHERE h.name = thread_name;
    -- The block that `wanted` is in may begin before it.
    SELECT b.first INTO start FROM {schema}.blocks b WHERE b.thread = thread_no AND b.first <= wanted
    ORDER BY b.first DESC LIMIT 1;
    start := coalesce(start, wanted);
    IF of_run IS NULL AND NOT backwards THEN
        FOR first, count, ts, run, codec, raw, bytes IN
            SELECT b.first, b.count, b.ts, b.run, b.codec, b.raw, b.bytes FROM {schema}.blocks b
            WHERE b.thread = thread_no AND b.first >= start AND b.first <= until
                AND b.first + b.count > wanted AND (NOT own OR b.run IS NULL)
            ORDER BY b.first
        LOOP
            RETURN NEXT;
            size := size + raw;
            EXIT WHEN size >= most;
        END LOOP;
    ELSIF of_run IS NULL THEN
        FOR first, count, ts, run, codec, raw, bytes IN
            SELECT b.first, b.count, b.ts, b.run, b.codec, b.raw, b.bytes FROM {schema}.blocks b
            WHERE b.thread = thread_no AND b.first >= start AND b.first <= until
                AND b.first + b.count > wanted AND (NOT own OR b.run IS NULL)
            ORDER BY b.first DESC
        LOOP
            EXIT WHEN size > 0 AND size + raw > most;
            RETURN NEXT;
            size := size + raw;
        END LOOP;
    ELSIF NOT backwards THEN
        FOR first, count, ts, run, codec, raw, bytes IN
            SELECT b.first, b.count, b.ts, b.run, b.codec, b.raw, b.bytes FROM {schema}.blocks b
            WHERE b.thread = thread_no AND b.run = of_run AND b.first >= start AND b.first <= until
                AND b.first + b.count > wanted
            ORDER BY b.first
        LOOP
            RETURN NEXT;
            size := size + raw;
            EXIT WHEN size >= most;
        END LOOP;
    ELSE
        FOR first, count, ts, run, codec, raw, bytes IN
            SELECT b.first, b.count, b.ts, b.run, b.codec, b.raw, b.bytes FROM {schema}.blocks b
            WHERE b.thread = thread_no AND b.run = of_run AND b.first >= start AND b.first <= until
                AND b.first + b.count > wanted
            ORDER BY b.first DESC
        LOOP
            EXIT WHEN size > 0 AND size + raw > most;
            RETURN NEXT;
            size := size + raw;
        END LOOP;
    END IF;
END $$;

-- Takes a key for a holder; false when another one that is not revoked has it, or this one is revoked.
CREATE FUNCTION {schema}.take(wanted bytea, who bytea) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    mine bytea;
BEGIN
    INSERT INTO {schema}.holders (name) VALUES (who) ON CONFLICT DO NOTHING;
    -- Held until the end: whoever revokes this holder does so before this, or after it.
    PERFORM FROM {schema}.holders h WHERE h.name = who AND NOT h.revoked FOR SHARE;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    INSERT INTO {schema}.leases AS l (key, holder) VALUES (wanted, who)
    ON CONFLICT (key) DO UPDATE SET holder = excluded.holder
    WHERE l.holder = who OR EXISTS (SELECT FROM {schema}.holders h WHERE h.name = l.holder AND h.revoked)
    RETURNING l.holder INTO mine;
    RETURN mine IS NOT NULL;
END $$;

-- Forgets a holder and its keys. One that was revoked stays known as that.
CREATE FUNCTION {schema}.leave(who bytea) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    -- First, so that no key is taken in between.
    PERFORM FROM {schema}.holders h WHERE h.name = who FOR UPDATE;
    DELETE FROM {schema}.leases l WHERE l.holder = who;
    DELETE FROM {schema}.holders h WHERE h.name = who AND NOT h.revoked;
END $$;
