//! Requests and answers of any protocol, one at a time on each of several connections, each as fast as it is answered.

use std::{
    io::{ErrorKind, Read, Write},
    net::TcpStream,
    os::{fd::AsFd, unix::net::UnixStream},
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, bail};
use rustix::event::epoll::{self, EventData, EventFlags};

/// A socket.
pub(crate) trait Stream: Read + Write + AsFd {
    fn dont_block(&self) -> std::io::Result<()>;
}

impl Stream for TcpStream {
    fn dont_block(&self) -> std::io::Result<()> {
        self.set_nodelay(true)?;
        self.set_nonblocking(true)
    }
}

impl Stream for UnixStream {
    fn dont_block(&self) -> std::io::Result<()> {
        self.set_nonblocking(true)
    }
}

/// How to ask for a window of the log, and how an answer looks.
pub(crate) trait Protocol {
    /// A connection that is ready for requests; it still blocks.
    fn connect(&self) -> Result<Box<dyn Stream>>;

    /// Writes the request for what comes after a position.
    fn request(&self, after: u64, out: &mut Vec<u8>);

    /// Whether the whole answer is there. An answer that is not what was asked for is an error.
    fn whole(&self, after: u64, answer: &[u8]) -> Result<bool>;
}

/// What came of it.
#[derive(Debug)]
pub(crate) struct Exchanged {
    pub(crate) per_second: f64,
    /// Microseconds of each, sorted.
    pub(crate) times_us: Vec<f64>,
}

struct Exchange {
    stream: Box<dyn Stream>,
    after: u64,
    begun: Instant,
    answer: Vec<u8>,
}

/// Asks at random positions of `0..positions` for some time.
pub(crate) fn exchange(
    protocol: &dyn Protocol,
    connections: usize,
    positions: u64,
    time: Duration,
) -> Result<Exchanged> {
    let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
    let mut all = Vec::new();
    for number in 0..connections {
        let stream = protocol.connect()?;
        stream.dont_block()?;
        epoll::add(&epoll, stream.as_fd(), EventData::new_u64(number as u64), EventFlags::IN)?;
        all.push(Exchange { stream, after: 0, begun: Instant::now(), answer: Vec::with_capacity(256 * 1024) });
    }
    let mut random = Random(0x2545_f491_4f6c_dd1d);
    let mut request = Vec::new();
    let begin = Instant::now();
    for exchange in &mut all {
        exchange.begin(protocol, random.below(positions), &mut request)?;
    }
    let (mut times_us, mut open) = (Vec::new(), connections);
    let mut ready = Vec::with_capacity(connections);
    let mut buffer = vec![0; 256 * 1024];
    while open > 0 {
        ready.clear();
        let timeout = rustix::event::Timespec { tv_sec: 30, tv_nsec: 0 };
        if epoll::wait(&epoll, rustix::buffer::spare_capacity(&mut ready), Some(&timeout))? == 0 {
            bail!("a request was not answered within 30 s");
        }
        for event in &ready {
            let Some(exchange) = all.get_mut(event.data.u64() as usize) else { continue };
            if exchange.read(protocol, &mut buffer)? {
                times_us.push(exchange.begun.elapsed().as_secs_f64() * 1e6);
                if begin.elapsed() < time {
                    exchange.begin(protocol, random.below(positions), &mut request)?;
                } else {
                    open -= 1;
                }
            }
        }
    }
    let per_second = times_us.len() as f64 / begin.elapsed().as_secs_f64();
    times_us.sort_by(f64::total_cmp);
    Ok(Exchanged { per_second, times_us })
}

impl Exchange {
    fn begin(&mut self, protocol: &dyn Protocol, after: u64, request: &mut Vec<u8>) -> Result<()> {
        request.clear();
        protocol.request(after, request);
        self.after = after;
        self.answer.clear();
        self.begun = Instant::now();
        // A request has a hundred bytes, and the socket is empty: it is taken whole.
        self.stream.write_all(request).context("asking")
    }

    fn read(&mut self, protocol: &dyn Protocol, buffer: &mut [u8]) -> Result<bool> {
        loop {
            match self.stream.read(buffer) {
                Ok(0) => bail!("the server closed the connection"),
                Ok(read) => {
                    self.answer.extend_from_slice(buffer.get(..read).unwrap_or_default());
                    if protocol.whole(self.after, &self.answer)? {
                        return Ok(true);
                    }
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(false),
                Err(error) => return Err(error).context("reading an answer"),
            }
        }
    }
}

/// Marsaglia's xorshift: the same positions in every round.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }
}
