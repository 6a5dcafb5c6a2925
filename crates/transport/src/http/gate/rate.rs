//! How often one client may ask.

use std::{
    net::{IpAddr, Ipv6Addr},
    num::NonZeroU32,
    sync::atomic::{AtomicU32, Ordering},
    time::Duration,
};

use axum::http::header;
use governor::{DefaultKeyedRateLimiter, Quota, RateLimiter, clock::Clock as _};

use crate::http::{HttpLimits, code::Code, problem::Problem};

/// Clients that have not asked for a while are forgotten after so many requests: memory is bounded by who asks.
const FORGET_EVERY: u32 = 65_536;

/// The rates of all clients.
pub(crate) struct Rates {
    limiter: Option<DefaultKeyedRateLimiter<IpAddr>>,
    per_second: u32,
    asked: AtomicU32,
}

impl Rates {
    pub(crate) fn new(limits: &HttpLimits) -> Self {
        let quota = NonZeroU32::new(limits.requests_per_second).map(|rate| {
            let burst = NonZeroU32::new(limits.burst).unwrap_or(rate);
            Quota::per_second(rate).allow_burst(burst.max(rate))
        });
        Self {
            limiter: quota.map(RateLimiter::keyed),
            per_second: limits.requests_per_second,
            asked: AtomicU32::new(0),
        }
    }

    /// Counts a request.
    pub(super) fn admit(&self, client: IpAddr) -> Result<(), Problem> {
        let Some(limiter) = &self.limiter else { return Ok(()) };
        if self.asked.fetch_add(1, Ordering::Relaxed) % FORGET_EVERY == FORGET_EVERY - 1 {
            limiter.retain_recent();
        }
        limiter.check_key(&network(client)).map_err(|early| {
            let wait = early.wait_time_from(limiter.clock().now());
            let seconds = wait.div_duration_f64(Duration::from_secs(1)).ceil().max(1.0);
            let detail =
                format!("{} requests a second are what one client may ask: try again in {seconds} s", self.per_second);
            let problem = Problem::new(Code::TooManyRequests, detail);
            // At most a few seconds, so that nothing is lost.
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "between 1 and a few")]
            problem.header(header::RETRY_AFTER, (seconds as u64).into())
        })
    }
}

/// What belongs to one client: an IPv6 network of 64 bits is what one is given at least.
fn network(client: IpAddr) -> IpAddr {
    match client {
        IpAddr::V4(_) => client,
        IpAddr::V6(ip) => Ipv6Addr::from_bits(ip.to_bits() >> 64 << 64).into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_client_is_slowed_and_others_are_not() {
        let rates = Rates::new(&HttpLimits { requests_per_second: 2, burst: 3, ..HttpLimits::default() });
        let (one, other) = ("192.0.2.1".parse().unwrap(), "192.0.2.2".parse().unwrap());
        assert!((0..3).all(|_| rates.admit(one).is_ok()));
        assert_eq!(rates.admit(one).unwrap_err().code(), Code::TooManyRequests);
        assert!(rates.admit(other).is_ok());
        let off = Rates::new(&HttpLimits { requests_per_second: 0, ..HttpLimits::default() });
        assert!((0..10_000).all(|_| off.admit(one).is_ok()));
    }

    #[test]
    fn addresses_of_one_network_are_one_client() {
        let network = |text: &str| network(text.parse().unwrap());
        assert_eq!(network("2001:db8:1:2::1"), network("2001:db8:1:2:ffff::9"));
        assert_ne!(network("2001:db8:1:2::1"), network("2001:db8:1:3::1"));
        assert_ne!(network("192.0.2.1"), network("192.0.2.2"));
    }
}
