//! Scratch PostgreSQL servers.
//!
//! A [`PgCluster`] is a server of its own, made by `initdb` in a temporary folder, reached over a Unix socket there. It
//! ends, and its folder goes, when the value is dropped, and also when the process is killed: a small guard process
//! waits for that.
//!
//! Binaries are looked for in `PATH` and where Debian puts them. When there are none and this is root, Debian's package
//! `postgresql` is installed. `initdb` refuses to run as root; then the server runs as `postgres`, or as `nobody`.
//!
//! ```no_run
//! use taffrail_testutils::postgres::PgCluster;
//!
//! let primary = PgCluster::start();
//! let standby = primary.standby();
//! primary.require_standby();
//! let url = primary.url_with(&standby, &primary.fresh_database());
//! // Open stores with the URL, append, then:
//! primary.kill();
//! standby.promote();
//! // What was acknowledged is there, and stores go on.
//! ```

#![expect(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

mod binaries;
mod guard;
mod processes;

use std::{
    ffi::OsStr,
    fs,
    net::TcpListener,
    path::{Path, PathBuf},
    process::Command,
    sync::atomic::{AtomicU64, Ordering::Relaxed},
    time::{Duration, Instant},
};

use binaries::Binaries;
use guard::Guard;

/// The role that owns everything, without a password on the Unix socket.
const USER: &str = "taffrail";

/// What a scratch server is like.
#[derive(Debug, Clone, Default)]
pub struct PgOptions {
    /// Whether commits reach the disk. Off is faster, and survives everything but a crash of the machine, which tests
    /// do not cause.
    pub fsync: bool,
    /// Where its folder is made, for measuring a particular disk. The path has to be short enough for a socket, and
    /// open to the user that the server runs as. Default: the system's temporary folder.
    pub within: Option<PathBuf>,
    /// Whether it listens on a port of 127.0.0.1 too. There the role `taffrail` needs the password `secret`.
    pub tcp: bool,
    /// More lines for `postgresql.conf`.
    pub settings: Vec<String>,
}

/// A scratch server. All its methods panic when something fails, with what was said.
#[derive(Debug)]
pub struct PgCluster {
    dir: PathBuf,
    port: u16,
    tcp: bool,
    binaries: Binaries,
    /// Last: the folder goes when the server has ended.
    _guard: Guard,
}

impl PgCluster {
    /// Starts a server with `fsync` off. Takes about two seconds.
    pub fn start() -> Self {
        Self::with(&PgOptions::default())
    }

    /// Starts a server.
    pub fn with(options: &PgOptions) -> Self {
        let cluster = Self::prepare(options.within.as_deref(), options.tcp);
        let data = cluster.data();
        cluster.run("initdb", &["-A", "trust", "-U", USER, "-E", "UTF8", "--locale=C", "--no-sync", "-D", path(&data)]);
        let fsync = if options.fsync { "on" } else { "off" };
        let mut lines = vec![
            format!("unix_socket_directories = '{}'", cluster.dir.display()),
            format!("port = {}", cluster.port),
            format!("listen_addresses = '{}'", if options.tcp { "127.0.0.1" } else { "" }),
            format!("fsync = {fsync}"),
            "shared_buffers = 64MB".into(),
            "wal_level = replica".into(),
            "max_wal_senders = 5".into(),
            "max_connections = 200".into(),
        ];
        lines.extend(options.settings.iter().cloned());
        cluster.configure(&lines);
        if options.tcp {
            let rules = "local all all trust\nlocal replication all trust\nhost all all 127.0.0.1/32 scram-sha-256\n";
            fs::write(data.join("pg_hba.conf"), rules).unwrap();
        }
        cluster.begin();
        if options.tcp {
            cluster.sql("postgres", &format!("ALTER ROLE {USER} PASSWORD 'secret'"));
        }
        cluster
    }

    fn prepare(within: Option<&Path>, tcp: bool) -> Self {
        let binaries = Binaries::find();
        let within = within.map_or_else(std::env::temp_dir, Path::to_path_buf);
        let dir = tempfile::Builder::new().prefix("taffrail-pg-").tempdir_in(within).unwrap();
        // From here on the guard removes it.
        let dir = fs::canonicalize(dir.keep()).unwrap();
        let guard = Guard::start(&dir);
        binaries.give(&dir);
        let port = if tcp { free_port() } else { 5432 };
        Self { dir, port, tcp, binaries, _guard: guard }
    }

    fn configure(&self, lines: &[String]) {
        let file = self.data().join("postgresql.conf");
        let mut text = fs::read_to_string(&file).unwrap();
        text.push_str(&lines.join("\n"));
        text.push('\n');
        fs::write(&file, text).unwrap();
    }

    /// Connects over the Unix socket to a database.
    pub fn url(&self, database: &str) -> String {
        let host = path(&self.dir).replace('/', "%2F");
        format!("postgres://{USER}@{host}:{}/{database}", self.port)
    }

    /// Connects to this server or another one, whichever takes writes.
    pub fn url_with(&self, other: &PgCluster, database: &str) -> String {
        let (here, there) = (path(&self.dir), path(&other.dir));
        format!(
            "host={here},{there} port={},{} user={USER} dbname={database} target_session_attrs=read-write",
            self.port, other.port
        )
    }

    /// Connects over TCP, with the right password.
    pub fn tcp_url(&self, database: &str) -> String {
        assert!(self.tcp, "the server was started without `tcp`");
        format!("postgres://{USER}:secret@127.0.0.1:{}/{database}", self.port)
    }

    /// The port, of TCP and in the name of the socket.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The folder that holds everything of it, and the socket.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    fn data(&self) -> PathBuf {
        self.dir.join("data")
    }

    /// Makes an empty database and gives its name.
    pub fn fresh_database(&self) -> String {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let name = format!("scratch{}_{}", std::process::id(), NUMBER.fetch_add(1, Relaxed));
        self.sql("postgres", &format!("CREATE DATABASE {name}"));
        name
    }

    /// Runs SQL with `psql`, and gives what it prints: a line a row, columns with `|` between.
    pub fn sql(&self, database: &str, sql: &str) -> String {
        let port = self.port.to_string();
        let args = ["-X", "-A", "-t", "-q", "-v", "ON_ERROR_STOP=1", "-h", path(&self.dir), "-p", &port, "-U", USER];
        self.run("psql", &[&args[..], &["-d", database, "-c", sql]].concat()).trim_end().to_owned()
    }

    /// What the server has logged.
    pub fn log(&self) -> String {
        fs::read_to_string(self.dir.join("log")).unwrap_or_default()
    }

    /// Starts the server again after [`PgCluster::stop`] or [`PgCluster::kill`].
    pub fn begin(&self) {
        let lock = self.data().join("postmaster.pid");
        let owner = fs::read_to_string(&lock).ok().and_then(|text| text.lines().next()?.trim().parse().ok());
        if owner.is_some_and(|pid| !processes::is_alive(pid)) {
            // Where nobody collects dead processes, the server would take its killed predecessor for alive.
            let socket = self.dir.join(format!(".s.PGSQL.{}.lock", self.port));
            for file in [lock, socket] {
                let _ = fs::remove_file(file);
            }
        }
        let log = self.dir.join("log");
        self.control(&["-w", "-t", "60", "-l", path(&log), "start"]);
    }

    /// Stops the server; whoever is connected is told.
    pub fn stop(&self) {
        self.control(&["-w", "-t", "60", "-m", "fast", "stop"]);
    }

    /// Stops the server and starts it again.
    pub fn restart(&self) {
        self.stop();
        self.begin();
    }

    /// Kills all processes of the server at once, as when its machine dies.
    pub fn kill(&self) {
        let all = self.processes();
        processes::send("KILL", &all);
        let deadline = Instant::now() + Duration::from_secs(20);
        while all.iter().any(|pid| processes::is_alive(*pid)) {
            assert!(Instant::now() < deadline, "killed processes are still there: {all:?}");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Stops all processes of the server where they are, as when its machine hangs; sockets stay open.
    pub fn freeze(&self) {
        processes::send("STOP", &self.processes());
    }

    /// Lets a frozen server go on.
    pub fn thaw(&self) {
        processes::send("CONT", &self.processes());
    }

    /// The server and the processes that it started.
    fn processes(&self) -> Vec<u32> {
        let file = fs::read_to_string(self.data().join("postmaster.pid")).expect("the server runs");
        let first = file.lines().next().and_then(|line| line.trim().parse().ok()).expect("a process id");
        let mut all = vec![first];
        all.extend(processes::children(first));
        all
    }

    /// Ends the connections to a database for which a condition over `pg_stat_activity` holds (`true` for all of them),
    /// and gives how many they were.
    pub fn drop_connections(&self, database: &str, condition: &str) -> usize {
        let sql = format!(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity
             WHERE datname = '{database}' AND pid <> pg_backend_pid() AND backend_type = 'client backend' AND ({condition})"
        );
        self.sql("postgres", &sql).lines().filter(|line| *line == "t").count()
    }

    /// Makes a standby that follows this server, and waits until it does. It has to be dropped, or stopped, like any
    /// other.
    pub fn standby(&self) -> PgCluster {
        let standby = Self::prepare(self.dir.parent(), false);
        let (data, port) = (standby.data(), self.port.to_string());
        self.run(
            "pg_basebackup",
            &[
                "-h",
                path(&self.dir),
                "-p",
                &port,
                "-U",
                USER,
                "-R",
                "-X",
                "stream",
                "-c",
                "fast",
                "--no-sync",
                "-D",
                path(&data),
            ],
        );
        // The last of several lines with one name counts.
        standby.configure(&[
            format!("unix_socket_directories = '{}'", standby.dir.display()),
            format!("port = {}", standby.port),
            "listen_addresses = ''".into(),
        ]);
        standby.begin();
        self.wait_for("SELECT count(*) > 0 FROM pg_stat_replication WHERE state = 'streaming'");
        standby
    }

    /// From now on a commit is answered once the standby has it on its disk, too.
    pub fn require_standby(&self) {
        self.sql("postgres", "ALTER SYSTEM SET synchronous_standby_names = '*'");
        self.sql("postgres", "SELECT pg_reload_conf()");
        self.wait_for("SELECT count(*) > 0 FROM pg_stat_replication WHERE sync_state = 'sync'");
    }

    /// Makes a standby the primary.
    pub fn promote(&self) {
        self.control(&["-w", "-t", "60", "promote"]);
    }

    /// Offers TLS for names `localhost` and 127.0.0.1, with a certificate made for this. Gives the file of the authority to
    /// trust.
    pub fn offer_tls(&self) -> PathBuf {
        let there = || Command::new("openssl").arg("version").output().ok().filter(|output| output.status.success());
        crate::debian::find("openssl", "openssl", there);
        let data = self.data();
        let (trusted, key, request) = (self.dir.join("ca.pem"), data.join("server.key"), data.join("server.csr"));
        let (cert, names) = (data.join("server.crt"), data.join("names"));
        fs::write(&names, "subjectAltName=DNS:localhost,IP:127.0.0.1").unwrap();
        let new_key = ["req", "-newkey", "rsa:2048", "-nodes", "-subj"];
        let authority = ["/CN=scratch authority", "-x509", "-days", "30", "-keyout", "ca.key", "-out", path(&trusted)];
        self.run("openssl", &[&new_key[..], &authority].concat());
        let server = ["/CN=localhost", "-keyout", path(&key), "-out", path(&request)];
        self.run("openssl", &[&new_key[..], &server].concat());
        let signing = ["x509", "-req", "-days", "30", "-CA", path(&trusted), "-CAkey", "ca.key", "-CAcreateserial"];
        let signed = ["-in", path(&request), "-extfile", path(&names), "-out", path(&cert)];
        self.run("openssl", &[&signing[..], &signed].concat());
        self.sql("postgres", "ALTER SYSTEM SET ssl = on");
        self.restart();
        trusted
    }

    /// Waits until a query says `t`.
    fn wait_for(&self, sql: &str) {
        let deadline = Instant::now() + Duration::from_secs(30);
        while self.sql("postgres", sql) != "t" {
            assert!(Instant::now() < deadline, "not within 30 s: {sql}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    fn control(&self, args: &[&str]) {
        let data = self.data();
        self.run("pg_ctl", &[&["-D", path(&data)], args].concat());
    }

    /// Runs a program as the server's user, and gives what it printed.
    fn run(&self, program: &str, args: &[impl AsRef<OsStr>]) -> String {
        let mut command: Command = self.binaries.command(program);
        // Its own files, not pipes: the server, which `pg_ctl` leaves behind, would keep those open.
        let (out, err) = (self.dir.join("out"), self.dir.join("err"));
        let unique = format!("{:?}", std::thread::current().id());
        let (out, err) = (out.with_extension(&unique), err.with_extension(&unique));
        command.args(args).current_dir(&self.dir).stdin(std::process::Stdio::null());
        command.stdout(fs::File::create(&out).unwrap()).stderr(fs::File::create(&err).unwrap());
        let status = command.status().unwrap_or_else(|e| panic!("{program} cannot be run: {e}"));
        let (said, complained) = (fs::read_to_string(&out).unwrap(), fs::read_to_string(&err).unwrap_or_default());
        assert!(
            status.success(),
            "{program} failed ({status}): {complained}{said}\nlog of the server:\n{}",
            self.log()
        );
        said
    }
}

fn path(path: &Path) -> &str {
    path.to_str().expect("a temporary folder has a plain name")
}

/// A port that nobody listens on now.
fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).unwrap().port()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_starts_and_ends_and_leaves_nothing() {
        let cluster = PgCluster::start();
        let dir = cluster.dir().to_path_buf();
        let database = cluster.fresh_database();
        cluster.sql(&database, "CREATE TABLE t (n int); INSERT INTO t VALUES (7)");
        cluster.restart();
        cluster.kill();
        cluster.begin();
        assert_eq!(cluster.sql(&database, "SELECT n FROM t"), "7", "it is what it was");
        let pids = cluster.processes();
        drop(cluster);
        assert!(!dir.exists());
        assert!(!pids.iter().any(|pid| processes::is_alive(*pid)), "{pids:?}");
    }

    /// Set for a child that starts a server and waits to be killed.
    const CHILD: &str = "TAFFRAIL_PG_CHILD";

    #[test]
    fn it_ends_with_a_process_that_is_killed() {
        use std::{
            io::{BufRead, BufReader, stdin},
            process::Stdio,
        };
        if std::env::var_os(CHILD).is_some() {
            let cluster = PgCluster::start();
            println!("folder {}", cluster.dir().display());
            let _ = stdin().lock().read_line(&mut String::new());
            return;
        }
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "postgres::tests::it_ends_with_a_process_that_is_killed", "--nocapture"])
            .env(CHILD, "1")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut said = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
        // The test harness leaves its own words on the line.
        let dir = said.find_map(|line| Some(PathBuf::from(line.split_once("folder ")?.1))).unwrap();
        assert!(dir.join("data/postmaster.pid").exists());
        child.kill().unwrap();
        child.wait().unwrap();
        let deadline = Instant::now() + Duration::from_secs(20);
        while dir.exists() {
            assert!(Instant::now() < deadline, "{} is still there", dir.display());
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    #[test]
    fn a_standby_follows_and_takes_over() {
        let primary = PgCluster::start();
        let standby = primary.standby();
        primary.require_standby();
        primary.sql("postgres", "CREATE TABLE t (n int); INSERT INTO t VALUES (7)");
        primary.kill();
        standby.promote();
        assert_eq!(standby.sql("postgres", "UPDATE t SET n = 8 RETURNING n"), "8");
    }
}
