//! The replay of one handler: its Nth question gets the Nth answer.

use std::{
    fmt,
    future::{Future, poll_fn},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Poll, Waker},
};

use taffrail_mcp_core::{BoxFuture, Question, Reply};

use super::{answer, format::Round};

/// One call of a handler.
pub(crate) struct Call {
    name: String,
    /// The client can be asked.
    asks: bool,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// What earlier calls of the handler have asked, and what came back.
    rounds: Vec<Round>,
    /// Calls of `elicit` in this one.
    calls: usize,
    stop: Option<Stop>,
    waker: Option<Waker>,
    /// The handler has returned, or was dropped. Who asks now asks nobody.
    over: bool,
}

/// Why a handler cannot go on.
#[derive(Debug, PartialEq)]
pub(crate) enum Stop {
    /// These questions, each with its number, are to be answered first.
    Asks(Vec<(usize, Question)>),
    /// The question of this number is not the one that was answered.
    Changed(usize),
    /// The answer to the question of this number does not fit its schema.
    Unfit(usize, String),
}

/// What became of a handler.
#[derive(Debug, PartialEq)]
pub(crate) enum Outcome<T> {
    Done(T),
    /// It was dropped; with the rounds so far.
    Stopped(Stop, Vec<Round>),
}

impl fmt::Debug for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Call").field("name", &self.name).finish_non_exhaustive()
    }
}

impl Call {
    pub(crate) fn new(name: String, asks: bool, rounds: Vec<Round>) -> Arc<Self> {
        let state = State { rounds, ..State::default() };
        Arc::new(Self { name, asks, state: Mutex::new(state) })
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The next question. Its number is settled here, by the order of the calls, whoever awaits first.
    pub(crate) fn ask(self: Arc<Self>, question: Question) -> BoxFuture<'static, Reply> {
        let mut state = self.state();
        if state.over {
            return Box::pin(std::future::ready(Reply::Dismissed));
        }
        let number = state.calls;
        state.calls += 1;
        match state.answer(number, &question) {
            Ok(Some(reply)) => return Box::pin(std::future::ready(reply)),
            Ok(None) if !self.asks => return Box::pin(std::future::ready(Reply::Dismissed)),
            Ok(None) => state.asks(number, question),
            // What is wrong comes before what is open, and the first wrong thing before others.
            Err(wrong) => {
                if matches!(state.stop, None | Some(Stop::Asks(_))) {
                    state.stop = Some(wrong);
                }
            }
        }
        if let Some(waker) = state.waker.take() {
            waker.wake();
        }
        drop(state);
        // The handler is dropped here.
        Box::pin(std::future::pending())
    }
}

impl State {
    fn answer(&self, number: usize, question: &Question) -> Result<Option<Reply>, Stop> {
        let Some(round) = self.rounds.get(number) else { return Ok(None) };
        if round.question != Round::digest(question) {
            return Err(Stop::Changed(number));
        }
        if let Some(Reply::Accepted(content)) = &round.reply {
            answer::check(content, &question.schema).map_err(|what| Stop::Unfit(number, what))?;
        }
        Ok(round.reply.clone())
    }

    fn asks(&mut self, number: usize, question: Question) {
        if number == self.rounds.len() {
            self.rounds.push(Round { question: Round::digest(&question), reply: None });
        }
        match &mut self.stop {
            Some(Stop::Asks(questions)) => questions.push((number, question)),
            Some(_) => {}
            None => self.stop = Some(Stop::Asks(vec![(number, question)])),
        }
    }
}

/// Runs `handler` to its end, or until it cannot go on.
///
/// All questions that the handler has put when it comes to wait are asked together. A result wins over a question that
/// nobody waits for.
pub(crate) async fn run<T>(call: &Call, handler: impl Future<Output = T>) -> Outcome<T> {
    /// Also when the request is given up.
    struct Over<'a>(&'a Call);
    impl Drop for Over<'_> {
        fn drop(&mut self) {
            self.0.state().over = true;
        }
    }
    let _over = Over(call);
    let mut handler = Box::pin(handler);
    poll_fn(|cx| {
        call.state().waker = Some(cx.waker().clone());
        if let Poll::Ready(result) = handler.as_mut().poll(cx) {
            return Poll::Ready(Outcome::Done(result));
        }
        let mut state = call.state();
        match state.stop.take() {
            Some(stop) => Poll::Ready(Outcome::Stopped(stop, std::mem::take(&mut state.rounds))),
            None => Poll::Pending,
        }
    })
    .await
}

#[cfg(test)]
mod tests {
    use serde_json::{Map, Value, json};

    use super::*;

    fn question(message: &str) -> Question {
        let schema = json!({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]});
        Question { message: message.to_owned(), schema: schema.as_object().cloned().unwrap() }
    }

    fn answered(message: &str, n: Value) -> Round {
        let content = Map::from_iter([("n".to_owned(), n)]);
        Round { question: Round::digest(&question(message)), reply: Some(Reply::Accepted(content)) }
    }

    async fn number(call: &Arc<Call>, message: &str) -> Option<i64> {
        match Arc::clone(call).ask(question(message)).await {
            Reply::Accepted(content) => content["n"].as_i64(),
            Reply::Declined | Reply::Dismissed => None,
        }
    }

    async fn two(call: &Arc<Call>) -> Vec<Option<i64>> {
        vec![number(call, "first").await, number(call, "second").await]
    }

    async fn outcome(asks: bool, rounds: Vec<Round>) -> Outcome<Vec<Option<i64>>> {
        let call = Call::new("x".to_owned(), asks, rounds);
        run(&call, two(&call)).await
    }

    #[tokio::test]
    async fn each_call_gets_its_own_answer() {
        let mut rounds = Vec::new();
        for (number, message) in ["first", "second"].into_iter().enumerate() {
            let Outcome::Stopped(stop, mut now) = outcome(true, rounds).await else { panic!("not asked") };
            assert_eq!(stop, Stop::Asks(vec![(number, question(message))]));
            assert_eq!(now.len(), number + 1);
            now[number] = answered(message, json!(number + 10));
            rounds = now;
        }
        assert_eq!(outcome(true, rounds).await, Outcome::Done(vec![Some(10), Some(11)]));
    }

    #[tokio::test]
    async fn a_changed_question_is_an_error() {
        let rounds = vec![answered("another", json!(1))];
        assert!(matches!(outcome(true, rounds).await, Outcome::Stopped(Stop::Changed(0), _)));
        let rounds = vec![answered("first", json!(1)), answered("third", json!(2))];
        assert!(matches!(outcome(false, rounds).await, Outcome::Stopped(Stop::Changed(1), _)));
        let swapped = vec![answered("second", json!(1)), answered("first", json!(2))];
        assert!(matches!(outcome(true, swapped).await, Outcome::Stopped(Stop::Changed(0), _)));
    }

    #[tokio::test]
    async fn an_answer_that_does_not_fit_is_an_error() {
        let rounds = vec![answered("first", json!("one"))];
        let Outcome::Stopped(stop, _) = outcome(true, rounds).await else { panic!("taken") };
        assert_eq!(stop, Stop::Unfit(0, "`n` is not of type integer".to_owned()));
    }

    #[tokio::test]
    async fn a_question_that_was_left_open_is_asked_again() {
        let rounds = vec![Round { reply: None, ..answered("first", json!(1)) }];
        let Outcome::Stopped(stop, rounds) = outcome(true, rounds).await else { panic!("not asked") };
        assert_eq!((stop, rounds.len()), (Stop::Asks(vec![(0, question("first"))]), 1));
    }

    #[tokio::test]
    async fn who_cannot_be_asked_has_dismissed_it() {
        assert_eq!(outcome(false, Vec::new()).await, Outcome::Done(vec![None, None]));
    }

    #[tokio::test]
    async fn questions_that_are_put_at_once_are_asked_at_once_also_from_other_tasks() {
        let call = Call::new("x".to_owned(), true, Vec::new());
        let elsewhere = Arc::clone(&call);
        let handler = async {
            let asking = tokio::spawn(async move { number(&elsewhere, "first").await });
            tokio::task::yield_now().await;
            tokio::join!(number(&call, "second"), number(&call, "third"), asking)
        };
        let Outcome::Stopped(Stop::Asks(questions), rounds) = run(&call, handler).await else { panic!("not asked") };
        assert_eq!(rounds.len(), questions.len());
        assert!(questions.iter().enumerate().all(|(index, (number, _))| index == *number));
    }

    #[tokio::test]
    async fn when_the_handler_is_over_nobody_is_asked() {
        let call = Call::new("x".to_owned(), true, Vec::new());
        assert_eq!(run(&call, async { 1 }).await, Outcome::Done(1));
        assert_eq!(number(&call, "late").await, None);
    }
}
