//! A balancer before several servers, as deployments have one: it spreads connections over those that answer.
//!
//! It knows TCP and nothing above it: no stickiness, no second try of a request. A server that is gone takes its
//! connections with it.

#![expect(clippy::expect_used, reason = "a test fails by panicking")]

use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed},
    },
    thread::{self, JoinHandle},
    time::Duration,
};

use tokio::{
    io::copy_bidirectional,
    net::{TcpListener, TcpStream},
    runtime,
    sync::oneshot,
    task::JoinSet,
    time::timeout,
};

/// How long a server may take to accept a connection before the next one is asked.
const CONNECT_TIME: Duration = Duration::from_secs(2);

/// A balancer on a port of 127.0.0.1, with a thread of its own. Dropping it closes all connections.
#[derive(Debug)]
pub struct Balancer {
    addr: SocketAddr,
    counts: Arc<Counts>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

/// Connections so far.
#[derive(Debug)]
struct Counts {
    servers: Vec<(SocketAddr, AtomicU64)>,
    /// For which no server answered.
    refused: AtomicU64,
    turn: AtomicUsize,
}

impl Balancer {
    /// Starts one before these servers, whether they are there yet or not.
    pub fn start(servers: &[SocketAddr]) -> Self {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
        listener.set_nonblocking(true).expect("a listener can be so");
        let addr = listener.local_addr().expect("it is bound");
        let servers = servers.iter().map(|addr| (*addr, AtomicU64::new(0))).collect();
        let counts = Arc::new(Counts { servers, refused: AtomicU64::new(0), turn: AtomicUsize::new(0) });
        let (stop, stopped) = oneshot::channel();
        let serving = Arc::clone(&counts);
        // With a runtime of its own, so that tests with and without one can have it.
        let thread = thread::spawn(move || {
            let runtime = runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
            runtime.block_on(async {
                let listener = TcpListener::from_std(listener).expect("a listener");
                tokio::select! {
                    () = serve(listener, serving) => {}
                    _ = stopped => {}
                }
            });
        });
        Self { addr, counts, stop: Some(stop), thread: Some(thread) }
    }

    /// Where it listens.
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// Where a client finds the servers behind it.
    pub fn url(&self) -> String {
        format!("http://{}", self.addr)
    }

    /// How many connections each server was given so far.
    pub fn given(&self) -> Vec<u64> {
        self.counts.servers.iter().map(|(_, count)| count.load(Relaxed)).collect()
    }

    /// How many connections were closed because no server answered.
    pub fn refused(&self) -> u64 {
        self.counts.refused.load(Relaxed)
    }
}

impl Drop for Balancer {
    fn drop(&mut self) {
        // Gone already if the thread has panicked.
        let _ = self.stop.take().map(|stop| stop.send(()));
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

async fn serve(listener: TcpListener, counts: Arc<Counts>) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            // Fails when there is no descriptor left for it; the next one may be luckier.
            Ok((client, _)) = listener.accept() => {
                let counts = Arc::clone(&counts);
                connections.spawn(async move { connect(client, &counts).await });
            }
            Some(_) = connections.join_next() => {}
        }
    }
}

/// Connects a client with the next server that answers, until one of them closes.
async fn connect(mut client: TcpStream, counts: &Counts) {
    let turn = counts.turn.fetch_add(1, Relaxed);
    let in_turn = counts.servers.iter().cycle().skip(turn % counts.servers.len().max(1));
    for (addr, count) in in_turn.take(counts.servers.len()) {
        if let Ok(Ok(mut server)) = timeout(CONNECT_TIME, TcpStream::connect(addr)).await {
            count.fetch_add(1, Relaxed);
            // Small things leave at once; when one side breaks, the other is closed.
            let _ = (client.set_nodelay(true), server.set_nodelay(true));
            let _ = copy_bidirectional(&mut client, &mut server).await;
            return;
        }
    }
    counts.refused.fetch_add(1, Relaxed);
}

#[cfg(test)]
mod tests {
    use std::{
        io::{Read as _, Write as _},
        net::{TcpListener as Listener, TcpStream as Stream},
    };

    use super::*;

    /// Answers each connection with its name.
    fn server(name: &'static str) -> SocketAddr {
        let listener = Listener::bind("127.0.0.1:0").unwrap();
        let addr = listener.local_addr().unwrap();
        thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                let mut byte = [0];
                stream.read_exact(&mut byte).unwrap();
                stream.write_all(name.as_bytes()).unwrap();
            }
        });
        addr
    }

    fn ask(balancer: &Balancer) -> String {
        let mut stream = Stream::connect(balancer.addr()).unwrap();
        let mut answer = String::new();
        // When no server answers the connection may be closed before this is sent.
        if stream.write_all(b"?").is_ok() {
            let _ = stream.read_to_string(&mut answer);
        }
        answer
    }

    #[test]
    fn those_that_answer_are_given_connections_in_turn() {
        let gone = Listener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let balancer = Balancer::start(&[server("a"), gone, server("b")]);
        let answers: Vec<_> = (0..6).map(|_| ask(&balancer)).collect();
        assert_eq!(answers, ["a", "b", "b", "a", "b", "b"]);
        assert_eq!((balancer.given(), balancer.refused()), (vec![2, 0, 4], 0));
    }

    #[test]
    fn without_a_server_connections_are_closed() {
        let gone = Listener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let balancer = Balancer::start(&[gone]);
        assert_eq!(ask(&balancer), "");
        assert_eq!(balancer.refused(), 1);
    }
}
