//! Publishers: as fast as they are answered, or at a pace.

use std::{
    io::{ErrorKind, Read as _, Write as _},
    net::TcpStream,
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, bail};
use rustix::event::epoll::{self, EventData, EventFlags};

use super::{Connection, Target, Template, http, now_ns, socket, thread_cpu};

/// How much is published.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Load {
    /// Each has one request in flight.
    pub(crate) connections: usize,
    /// Messages of a request.
    pub(crate) batch: usize,
    /// No request is begun after this time …
    pub(crate) time: Duration,
    /// … or after this many messages, counted over all connections.
    pub(crate) messages: u64,
}

/// What was published and acknowledged.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Published {
    pub(crate) messages: u64,
    /// Before the first request, after the last answer.
    pub(crate) begin: Instant,
    pub(crate) end: Instant,
    /// Processor time of the publishing thread.
    pub(crate) cpu: Duration,
}

impl Published {
    pub(crate) fn per_second(&self) -> f64 {
        self.messages as f64 / (self.end - self.begin).as_secs_f64()
    }
}

struct Publisher {
    socket: TcpStream,
    template: Template,
    /// Number of the next message.
    number: u64,
    request: Vec<u8>,
    head: usize,
    /// How much of the request is sent.
    sent: usize,
    answer: Vec<u8>,
}

impl Publisher {
    fn open(target: &Target, number: usize, batch: usize) -> Result<Self> {
        let mut template = Template::new(number, batch, target.lines);
        let body = template.stamp(0, 0);
        let head = http::post(target, body.len());
        let request = [head.as_bytes(), body].concat();
        let socket = socket::open(target.addr, 0, None)?;
        Ok(Self { socket, template, number: 1, head: head.len(), sent: request.len(), request, answer: Vec::new() })
    }

    fn begin(&mut self, batch: usize) -> Result<()> {
        let body = self.template.stamp(self.number, now_ns());
        self.request.truncate(self.head);
        self.request.extend_from_slice(body);
        self.number += batch as u64;
        self.sent = 0;
        self.write()
    }

    /// Writes what the socket takes; edges tell when it takes more.
    fn write(&mut self) -> Result<()> {
        while let Some(rest) = self.request.get(self.sent..).filter(|rest| !rest.is_empty()) {
            match self.socket.write(rest) {
                Ok(wrote) => self.sent += wrote,
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) => return Err(error).context("publishing"),
            }
        }
        Ok(())
    }

    /// Whether the answer is all there.
    fn read(&mut self, buffer: &mut [u8]) -> Result<bool> {
        loop {
            match self.socket.read(buffer) {
                Ok(0) => bail!("the server closed a publisher's connection"),
                Ok(read) => {
                    let got = buffer.get(..read).unwrap_or_default();
                    // Nearly always one read brings one answer.
                    let whole = if self.answer.is_empty() && http::whole_response(got)?.is_some() {
                        true
                    } else {
                        self.answer.extend_from_slice(got);
                        http::whole_response(&self.answer)?.is_some()
                    };
                    if whole {
                        self.answer.clear();
                        return Ok(true);
                    }
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(false),
                Err(error) => return Err(error).context("reading a publisher's answer"),
            }
        }
    }
}

/// Publishes on several connections, each as fast as it is answered.
pub(crate) fn closed_loop(target: &Target, load: &Load) -> Result<Published> {
    let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
    let mut publishers = Vec::new();
    for number in 0..load.connections {
        let publisher = Publisher::open(target, number, load.batch)?;
        let interest = EventFlags::IN | EventFlags::OUT | EventFlags::ET;
        epoll::add(&epoll, &publisher.socket, EventData::new_u64(number as u64), interest)?;
        publishers.push(publisher);
    }
    let cpu = thread_cpu();
    let begin = Instant::now();
    let (mut begun, mut answered) = (0, 0);
    for publisher in &mut publishers {
        publisher.begin(load.batch)?;
        begun += load.batch as u64;
    }
    let mut buffer = vec![0; 64 * 1024];
    let mut ready = Vec::with_capacity(load.connections);
    while answered < begun {
        ready.clear();
        let timeout = rustix::event::Timespec { tv_sec: 30, tv_nsec: 0 };
        let some = epoll::wait(&epoll, rustix::buffer::spare_capacity(&mut ready), Some(&timeout))?;
        if some == 0 {
            bail!("a publisher has waited 30 s for an answer");
        }
        for event in &ready {
            let Some(publisher) = publishers.get_mut(event.data.u64() as usize) else { continue };
            publisher.write()?;
            if publisher.read(&mut buffer)? {
                answered += load.batch as u64;
                if begun < load.messages && begin.elapsed() < load.time {
                    publisher.begin(load.batch)?;
                    begun += load.batch as u64;
                }
            }
        }
    }
    Ok(Published { messages: answered, begin, end: Instant::now(), cpu: thread_cpu() - cpu })
}

/// Publishes at a steady rate of requests on one connection.
///
/// A message carries the time when it was due, if the answer before came later than that, so that a server that stalls
/// is not measured less often while it stalls; else the time when it was sent.
pub(crate) fn paced(target: &Target, per_second: u32, batch: usize, time: Duration) -> Result<Published> {
    let mut template = Template::new(0, batch, target.lines);
    let head = http::post(target, template.stamp(0, 0).len());
    let mut connection = Connection::open(target.addr)?;
    let mut request = Vec::new();
    let cpu = thread_cpu();
    let (begin, begin_ns) = (Instant::now(), now_ns());
    let interval = 1_000_000_000 / u64::from(per_second);
    let mut messages = 0;
    for turn in 0..time.as_nanos() as u64 / interval {
        let due = begin_ns + turn * interval;
        let now = now_ns();
        let stamp = if now < due {
            thread::sleep(Duration::from_nanos(due - now));
            now_ns()
        } else {
            due
        };
        request.clear();
        request.extend_from_slice(head.as_bytes());
        request.extend_from_slice(template.stamp(messages + 1, stamp));
        connection.exchange(&request)?.success()?;
        messages += batch as u64;
    }
    Ok(Published { messages, begin, end: Instant::now(), cpu: thread_cpu() - cpu })
}
