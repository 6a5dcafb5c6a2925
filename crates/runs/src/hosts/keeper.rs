//! What goes on beside hosting by leases: signs of life, listening for those of others, giving back.

use std::{
    sync::{Arc, Weak},
    time::Duration,
};

use taffrail_relay::StoreError;
use tokio::time::{Instant, MissedTickBehavior};

use super::leases::{Shared, key};

/// What could not be given back is tried again after this time.
const TRY_AGAIN: Duration = Duration::from_secs(1);

/// Begins, unless it has begun. Ends with the last one who knows `shared`, or with the runtime.
pub(super) fn start(shared: &Arc<Shared>) {
    if std::mem::replace(&mut shared.state().kept, true) {
        return;
    }
    tokio::spawn(pulse(Arc::downgrade(shared)));
    tokio::spawn(give_back(Arc::downgrade(shared)));
}

/// Gives signs of life and listens for others', five times in a silence.
async fn pulse(shared: Weak<Shared>) {
    let Some(every) = shared.upgrade().map(|shared| shared.silence / 5) else { return };
    let mut ticks = tokio::time::interval(every);
    // What was missed in a pause cannot be made up for.
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        let Some(shared) = shared.upgrade() else { return };
        tokio::join!(beat(&shared), listen(&shared));
    }
}

async fn beat(shared: &Shared) {
    let _turn = shared.beating.lock().await;
    let name = {
        let state = shared.state();
        // Who hosts nothing need not be known to be alive.
        if !state.known {
            return;
        }
        state.name.clone()
    };
    match within(shared, shared.leases.beat(name.clone())).await {
        Some(Ok(true)) => {}
        Some(Ok(false)) => shared.revoked(&name),
        Some(Err(error)) => tracing::debug!(%error, "could not give a sign of life"),
        None => tracing::debug!("could not give a sign of life in time"),
    }
}

async fn listen(shared: &Shared) {
    let asked = Instant::now();
    let holders = match within(shared, shared.leases.holders()).await {
        Some(Ok(holders)) => holders,
        failed => {
            if let Some(Err(error)) = failed {
                tracing::debug!(%error, "could not listen for signs of life");
            }
            shared.state().watching.failed();
            return;
        }
    };
    let (told, name) = {
        let mut state = shared.state();
        (state.watching.heard(asked, Instant::now(), holders), state.name.clone())
    };
    let mut left = told.left;
    for (holder, beats) in told.silent {
        // Of itself a process learns by its own sign of life.
        if holder == name {
            continue;
        }
        match within(shared, shared.leases.revoke(holder.clone(), beats)).await {
            Some(Ok(true)) => {
                tracing::warn!(%holder, "a process gives no sign of life any more; its runs are interrupted");
                left.push(holder);
            }
            Some(Ok(false)) => {}
            // It is found again; now it matters more to give signs of life.
            _ => break,
        }
    }
    if !left.is_empty() {
        shared.tell_who_left(&left);
    }
}

/// Not longer than a silence: who waits for an answer gives no signs.
async fn within<T>(
    shared: &Shared,
    call: impl Future<Output = Result<T, StoreError>>,
) -> Option<Result<T, StoreError>> {
    tokio::time::timeout(shared.silence * 2 / 5, call).await.ok()
}

/// Gives back what was let go of without waiting.
async fn give_back(shared: Weak<Shared>) {
    loop {
        let Some(strong) = shared.upgrade() else { return };
        let pause = if tidy(&strong).await { strong.silence } else { TRY_AGAIN };
        let wake = Arc::clone(&strong.wake);
        // Not held while there is nothing to do.
        drop(strong);
        let _ = tokio::time::timeout(pause, wake.notified()).await;
    }
}

/// Whether everything could be given back.
async fn tidy(shared: &Shared) -> bool {
    let (releases, names) = {
        let mut state = shared.state();
        (std::mem::take(&mut state.to_release), std::mem::take(&mut state.to_forget))
    };
    let mut all = true;
    for (run, name) in releases {
        match within(shared, shared.leases.release(key(&run), name.clone())).await {
            Some(Ok(())) => shared.released(&run, &name),
            _ => {
                all = false;
                shared.state().to_release.push((run, name));
            }
        }
    }
    for name in names {
        if !matches!(within(shared, shared.leases.leave(name.clone())).await, Some(Ok(()))) {
            all = false;
            shared.state().to_forget.push(name);
        }
    }
    all
}

/// Ends in good order: nobody has to find out that this process is gone.
pub(super) async fn leave(shared: &Arc<Shared>) {
    tidy(shared).await;
    // A sign of life that comes after this would make it known again.
    let _turn = shared.beating.lock().await;
    let name = {
        let mut state = shared.state();
        if !std::mem::replace(&mut state.known, false) {
            return;
        }
        state.name.clone()
    };
    if !matches!(within(shared, shared.leases.leave(name)).await, Some(Ok(()))) {
        tracing::debug!("could not say that this process ends");
    }
}
