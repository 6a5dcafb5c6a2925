//! Subscribers: any number of event streams read by one thread.

use std::{
    io::{ErrorKind, Read as _, Write as _},
    net::TcpStream,
    os::fd::OwnedFd,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, bail, ensure};
use rustix::event::{
    Timespec,
    epoll::{self, EventData, EventFlags},
};

use super::{
    Head, Target,
    chunked::Chunked,
    http, message, now_ns, socket,
    sse::{Events, Seen, look},
};

/// How a subscriber sees that nothing is missing and nothing comes twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Check {
    /// Ids are 1, 2, 3, …
    Ids,
    /// The numbers that publishers put into their messages are, for each publisher, 1, 2, 3, …
    Numbers,
}

/// What subscribers do.
#[derive(Debug, Clone, Default)]
pub(crate) struct Plan {
    /// Where they begin.
    pub(crate) last_event_id: Option<String>,
    /// Connect anew after this many events, with the id of the last one.
    pub(crate) reconnect_every: Option<u64>,
    /// Keep how long each event was under way.
    pub(crate) latencies: bool,
    /// The first id, and the first number of each publisher, that is expected is one more.
    pub(crate) after: u64,
    /// Size of the sockets' receive buffers; the system's when it is not told.
    pub(crate) receive_buffer: Option<usize>,
}

#[derive(Debug)]
struct Subscriber {
    target: usize,
    socket: TcpStream,
    /// The response's head as far as it has come; `None` behind it.
    head: Option<Vec<u8>>,
    chunked: Option<Chunked>,
    events: Events,
    /// Events so far, and those of this connection.
    count: u64,
    on_connection: u64,
    last_id: u64,
    last_numbers: [u64; 10],
    paused: bool,
}

/// Some subscribers, and what they have seen.
pub(crate) struct Crowd {
    epoll: OwnedFd,
    targets: Vec<Target>,
    plan: Plan,
    subscribers: Vec<Subscriber>,
    buffer: Vec<u8>,
    ready: Vec<epoll::Event>,
    /// Subscribers whose stream has begun.
    begun: usize,
    /// Events of all together.
    pub(crate) delivered: u64,
    /// Nanoseconds that events were under way, when the plan asks for them.
    pub(crate) latencies: Vec<u64>,
    pub(crate) reconnects: u64,
    /// Each of them has this many events when `reached` counts it.
    goal: u64,
    reached: usize,
    last: Instant,
}

impl Crowd {
    pub(crate) fn new(plan: Plan) -> Result<Self> {
        Ok(Self {
            epoll: epoll::create(epoll::CreateFlags::CLOEXEC)?,
            targets: Vec::new(),
            plan,
            subscribers: Vec::new(),
            buffer: vec![0; 256 * 1024],
            ready: Vec::with_capacity(1024),
            begun: 0,
            delivered: 0,
            latencies: Vec::new(),
            reconnects: 0,
            goal: u64::MAX,
            reached: 0,
            last: Instant::now(),
        })
    }

    /// Connects some more.
    pub(crate) fn join(&mut self, target: &Target, count: usize) -> Result<()> {
        self.targets.push(target.clone());
        let target = self.targets.len() - 1;
        for _ in 0..count {
            let number = self.subscribers.len();
            let id = self.plan.last_event_id.clone();
            let socket = self.connect(target, number, id.as_deref())?;
            self.subscribers.push(Subscriber {
                target,
                socket,
                head: Some(Vec::new()),
                chunked: None,
                events: Events::default(),
                count: 0,
                on_connection: 0,
                last_id: self.plan.after,
                last_numbers: [self.plan.after; 10],
                paused: false,
            });
            // A listener's queue is short: what has come is taken while more connect.
            if number % 64 == 63 {
                self.turn(Duration::ZERO)?;
            }
        }
        Ok(())
    }

    fn connect(&self, target: usize, number: usize, last_event_id: Option<&str>) -> Result<TcpStream> {
        let target = self.targets.get(target).context("no such target")?;
        let mut socket = socket::open(target.addr, number, self.plan.receive_buffer)?;
        // A new connection takes a few hundred bytes at once.
        socket.write_all(http::subscribe(target, last_event_id).as_bytes())?;
        epoll::add(&self.epoll, &socket, EventData::new_u64(number as u64), EventFlags::IN)?;
        Ok(socket)
    }

    /// Waits until every stream has begun.
    pub(crate) fn all_begun(&mut self) -> Result<()> {
        let deadline = Instant::now() + Duration::from_secs(60);
        while self.begun < self.subscribers.len() {
            self.turn(Duration::from_millis(100))?;
            ensure!(Instant::now() < deadline, "{} of {} streams have begun", self.begun, self.subscribers.len());
        }
        Ok(())
    }

    /// Waits until each has this many events; returns when the last one came.
    pub(crate) fn until(&mut self, events: u64, within: Duration) -> Result<Instant> {
        self.goal = events;
        self.reached = self.subscribers.iter().filter(|s| s.count >= events).count();
        let deadline = Instant::now() + within;
        while self.reached < self.subscribers.len() {
            self.turn(Duration::from_millis(100))?;
            if Instant::now() > deadline {
                let least = self.subscribers.iter().map(|s| s.count).min().unwrap_or_default();
                bail!(
                    "after {within:?} {} of {} subscribers have all {events} events, one only {least}",
                    self.reached,
                    self.subscribers.len()
                );
            }
        }
        self.goal = u64::MAX;
        Ok(self.last)
    }

    /// Events of the one that has fewest.
    pub(crate) fn least(&self) -> u64 {
        self.subscribers.iter().map(|s| s.count).min().unwrap_or_default()
    }

    /// Stops reading, or reads on.
    pub(crate) fn pause(&mut self, paused: bool) -> Result<()> {
        let interest = if paused { EventFlags::empty() } else { EventFlags::IN };
        for (number, subscriber) in self.subscribers.iter_mut().enumerate() {
            epoll::modify(&self.epoll, &subscriber.socket, EventData::new_u64(number as u64), interest)?;
            subscriber.paused = paused;
        }
        Ok(())
    }

    /// Reads once from each stream that has something, or waits for one that does.
    pub(crate) fn turn(&mut self, timeout: Duration) -> Result<()> {
        self.ready.clear();
        let timeout = Timespec { tv_sec: timeout.as_secs() as i64, tv_nsec: i64::from(timeout.subsec_nanos()) };
        match epoll::wait(&self.epoll, rustix::buffer::spare_capacity(&mut self.ready), Some(&timeout)) {
            Ok(0) | Err(rustix::io::Errno::INTR) => return Ok(()),
            Ok(_) => {}
            Err(error) => return Err(error.into()),
        }
        let before = self.delivered;
        for at in 0..self.ready.len() {
            let Some(number) = self.ready.get(at).map(|event| event.data.u64() as usize) else { break };
            self.read(number).with_context(|| format!("subscriber {number}"))?;
        }
        if self.delivered != before {
            self.last = Instant::now();
        }
        Ok(())
    }

    fn read(&mut self, number: usize) -> Result<()> {
        let Some(subscriber) = self.subscribers.get_mut(number) else { return Ok(()) };
        // A paused one is told of here when its connection breaks.
        ensure!(!subscriber.paused, "the server closed the connection of a subscriber that does not read");
        let read = match subscriber.socket.read(&mut self.buffer) {
            Ok(0) => bail!("the server ended the stream after {} events", subscriber.count),
            Ok(read) => read,
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
            Err(error) => return Err(error).context("reading"),
        };
        let now = if self.plan.latencies { now_ns() } else { 0 };
        let check = self.targets.get(subscriber.target).context("no such target")?.check;
        let before = subscriber.count;
        let input = self.buffer.get(..read).unwrap_or_default();
        let latencies = &mut self.latencies;
        let stop = self.plan.reconnect_every.unwrap_or(u64::MAX);
        let behind_head;
        let mut input = if let Some(head) = &mut subscriber.head {
            head.extend_from_slice(input);
            let Some(found) = Head::read(head)? else { return Ok(()) };
            ensure!(found.status == 200, "status {}: {}", found.status, String::from_utf8_lossy(head));
            subscriber.chunked = found.chunked.then(Chunked::default);
            behind_head = head.split_off(found.len);
            subscriber.head = None;
            self.begun += 1;
            behind_head.as_slice()
        } else {
            input
        };
        match subscriber.chunked {
            None => subscriber.take(&mut input, check, stop, now, latencies)?,
            Some(mut chunked) => {
                while let Some(mut data) = chunked.next(&mut input)? {
                    subscriber.take(&mut data, check, stop, now, latencies)?;
                }
                ensure!(!chunked.ended(), "the server ended the stream after {} events", subscriber.count);
                subscriber.chunked = Some(chunked);
            }
        }
        self.delivered += subscriber.count - before;
        self.reached += usize::from(before < self.goal && subscriber.count >= self.goal);
        if subscriber.on_connection >= stop {
            self.reconnect(number)?;
        }
        Ok(())
    }

    fn reconnect(&mut self, number: usize) -> Result<()> {
        let Some((target, last_id)) = self.subscribers.get(number).map(|s| (s.target, s.last_id)) else {
            return Ok(());
        };
        let socket = self.connect(target, number, Some(&last_id.to_string()))?;
        if let Some(subscriber) = self.subscribers.get_mut(number) {
            // The old one leaves the epoll as it is closed.
            subscriber.socket = socket;
            subscriber.head = Some(Vec::new());
            subscriber.chunked = None;
            subscriber.events = Events::default();
            subscriber.on_connection = 0;
            self.begun -= 1;
            self.reconnects += 1;
        }
        Ok(())
    }
}

impl Subscriber {
    /// Looks at events up to so many on this connection.
    fn take(&mut self, input: &mut &[u8], check: Check, stop: u64, now: u64, latencies: &mut Vec<u64>) -> Result<()> {
        while self.on_connection < stop {
            let Some(event) = self.events.next(input) else { break };
            let id = match look(event) {
                Seen::Event { id } => id,
                Seen::Nothing => continue,
                Seen::Named(name) => bail!("event {:?} after id {}", String::from_utf8_lossy(name), self.last_id),
            };
            match check {
                Check::Ids => {
                    ensure!(id == Some(self.last_id + 1), "id {id:?} came after {}", self.last_id);
                    self.last_id += 1;
                }
                Check::Numbers => {
                    let number = message::number(event);
                    let last = number.and_then(|(publisher, _)| self.last_numbers.get_mut(publisher));
                    let (Some((publisher, number)), Some(last)) = (number, last) else {
                        bail!("a message without a number: {:?}", String::from_utf8_lossy(event))
                    };
                    ensure!(number == *last + 1, "number {number} of publisher {publisher} came after {last}");
                    *last = number;
                }
            }
            if now > 0
                && let Some(sent) = message::time(event)
            {
                latencies.push(now.saturating_sub(sent));
            }
            self.count += 1;
            self.on_connection += 1;
        }
        Ok(())
    }
}
