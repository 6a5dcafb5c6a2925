//! The replay of one handler: its Nth question gets the Nth answer, and what it did once is not done again.

use std::{
    fmt,
    future::{Future, poll_fn},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Poll, Waker},
};

use serde::{Serialize, de::DeserializeOwned};
use taffrail_mcp_core::{BoxFuture, Elicitor, Question, Reply};

use super::{
    answer,
    format::{Past, Round},
};

/// How the client of a call can be asked.
#[derive(Clone)]
pub(crate) enum Way {
    /// It cannot.
    None,
    /// By an answer that asks, and a request that is made again.
    Replay,
    /// At once, while the request goes on.
    Direct(Arc<dyn Elicitor>),
}

/// One call of a handler.
pub(crate) struct Call {
    name: String,
    way: Way,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// What earlier calls of the handler have asked and done.
    past: Past,
    /// Calls of `elicit` in this one.
    calls: usize,
    /// Calls of `once` in this one.
    acts: usize,
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
    /// What was done at this number is not what the handler does there now.
    OtherAct(usize),
}

/// What became of a handler.
#[derive(Debug, PartialEq)]
pub(crate) enum Outcome<T> {
    Done(T),
    /// It was dropped; with what it has asked and done so far.
    Stopped(Stop, Past),
}

impl fmt::Debug for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Call").field("name", &self.name).finish_non_exhaustive()
    }
}

impl Call {
    pub(crate) fn new(name: String, way: Way, past: Past) -> Arc<Self> {
        let state = State { past, ..State::default() };
        Arc::new(Self { name, way, state: Mutex::new(state) })
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn can_ask(&self) -> bool {
        !matches!(self.way, Way::None)
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
        match (state.answer(number, &question), &self.way) {
            (Ok(Some(reply)), _) => return Box::pin(std::future::ready(reply)),
            (Ok(None), Way::None) => return Box::pin(std::future::ready(Reply::Dismissed)),
            (Ok(None), Way::Replay) => state.asks(number, question),
            (Ok(None), Way::Direct(elicitor)) => {
                let elicitor = Arc::clone(elicitor);
                drop(state);
                return Box::pin(async move { self.ask_directly(&*elicitor, number, question).await });
            }
            (Err(wrong), _) => state.stop_for(wrong),
        }
        state.wake();
        drop(state);
        // The handler is dropped here.
        Box::pin(std::future::pending())
    }

    async fn ask_directly(&self, elicitor: &dyn Elicitor, number: usize, question: Question) -> Reply {
        let schema = question.schema.clone();
        let reply = elicitor.elicit(question).await;
        let Reply::Accepted(content) = &reply else { return reply };
        let Err(what) = answer::check(content, &schema) else { return reply };
        {
            let mut state = self.state();
            state.stop_for(Stop::Unfit(number, what));
            state.wake();
        }
        std::future::pending().await
    }

    /// Does `work`, unless an earlier call of the handler has: then it is what came of it there. Its number is settled here,
    /// by the order of the calls.
    pub(crate) fn once<T, E, W>(self: Arc<Self>, work: W) -> impl Future<Output = Result<T, E>> + Send
    where
        T: Serialize + DeserializeOwned + Send,
        W: Future<Output = Result<T, E>> + Send,
    {
        let (number, known) = {
            let mut state = self.state();
            let number = state.acts;
            state.acts += 1;
            (number, state.past.done.get(number).cloned().flatten())
        };
        async move {
            let Some(known) = known else {
                let result = work.await?;
                // What has no form cannot be remembered, and is done again: the types of handlers have one.
                if let Ok(value) = serde_json::to_value(&result) {
                    self.state().did(number, value);
                }
                return Ok(result);
            };
            if let Ok(known) = serde_json::from_value(known) {
                return Ok(known);
            }
            {
                let mut state = self.state();
                state.stop_for(Stop::OtherAct(number));
                state.wake();
            }
            std::future::pending().await
        }
    }
}

impl State {
    fn answer(&self, number: usize, question: &Question) -> Result<Option<Reply>, Stop> {
        let Some(round) = self.past.rounds.get(number) else { return Ok(None) };
        if round.question != Round::digest(question) {
            return Err(Stop::Changed(number));
        }
        if let Some(Reply::Accepted(content)) = &round.reply {
            answer::check(content, &question.schema).map_err(|what| Stop::Unfit(number, what))?;
        }
        Ok(round.reply.clone())
    }

    fn asks(&mut self, number: usize, question: Question) {
        if number == self.past.rounds.len() {
            self.past.rounds.push(Round { question: Round::digest(&question), reply: None });
        }
        match &mut self.stop {
            Some(Stop::Asks(questions)) => questions.push((number, question)),
            Some(_) => {}
            None => self.stop = Some(Stop::Asks(vec![(number, question)])),
        }
    }

    fn did(&mut self, number: usize, value: serde_json::Value) {
        let done = &mut self.past.done;
        if done.len() <= number {
            done.resize(number + 1, None);
        }
        if let Some(place) = done.get_mut(number) {
            *place = Some(value);
        }
    }

    /// What is wrong comes before what is open, and the first wrong thing before others.
    fn stop_for(&mut self, wrong: Stop) {
        if matches!(self.stop, None | Some(Stop::Asks(_))) {
            self.stop = Some(wrong);
        }
    }

    fn wake(&mut self) {
        if let Some(waker) = self.waker.take() {
            waker.wake();
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
            Some(stop) => Poll::Ready(Outcome::Stopped(stop, std::mem::take(&mut state.past))),
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

    fn past(rounds: Vec<Round>) -> Past {
        Past { rounds, done: Vec::new() }
    }

    async fn outcome(way: Way, rounds: Vec<Round>) -> Outcome<Vec<Option<i64>>> {
        let call = Call::new("x".to_owned(), way, past(rounds));
        run(&call, two(&call)).await
    }

    #[tokio::test]
    async fn each_call_gets_its_own_answer() {
        let mut rounds = Vec::new();
        for (number, message) in ["first", "second"].into_iter().enumerate() {
            let Outcome::Stopped(stop, mut now) = outcome(Way::Replay, rounds).await else { panic!("not asked") };
            assert_eq!(stop, Stop::Asks(vec![(number, question(message))]));
            assert_eq!(now.rounds.len(), number + 1);
            now.rounds[number] = answered(message, json!(number + 10));
            rounds = now.rounds;
        }
        assert_eq!(outcome(Way::Replay, rounds).await, Outcome::Done(vec![Some(10), Some(11)]));
    }

    #[tokio::test]
    async fn a_changed_question_is_an_error() {
        let rounds = vec![answered("another", json!(1))];
        assert!(matches!(outcome(Way::Replay, rounds).await, Outcome::Stopped(Stop::Changed(0), _)));
        let rounds = vec![answered("first", json!(1)), answered("third", json!(2))];
        assert!(matches!(outcome(Way::None, rounds).await, Outcome::Stopped(Stop::Changed(1), _)));
        let swapped = vec![answered("second", json!(1)), answered("first", json!(2))];
        assert!(matches!(outcome(Way::Replay, swapped).await, Outcome::Stopped(Stop::Changed(0), _)));
    }

    #[tokio::test]
    async fn an_answer_that_does_not_fit_is_an_error() {
        let rounds = vec![answered("first", json!("one"))];
        let Outcome::Stopped(stop, _) = outcome(Way::Replay, rounds).await else { panic!("taken") };
        assert_eq!(stop, Stop::Unfit(0, "`n` is not of type integer".to_owned()));
    }

    #[tokio::test]
    async fn a_question_that_was_left_open_is_asked_again() {
        let rounds = vec![Round { reply: None, ..answered("first", json!(1)) }];
        let Outcome::Stopped(stop, rounds) = outcome(Way::Replay, rounds).await else { panic!("not asked") };
        assert_eq!((stop, rounds.rounds.len()), (Stop::Asks(vec![(0, question("first"))]), 1));
    }

    #[tokio::test]
    async fn who_cannot_be_asked_has_dismissed_it() {
        assert_eq!(outcome(Way::None, Vec::new()).await, Outcome::Done(vec![None, None]));
    }

    #[tokio::test]
    async fn questions_that_are_put_at_once_are_asked_at_once_also_from_other_tasks() {
        let call = Call::new("x".to_owned(), Way::Replay, Past::default());
        let elsewhere = Arc::clone(&call);
        let handler = async {
            let asking = tokio::spawn(async move { number(&elsewhere, "first").await });
            tokio::task::yield_now().await;
            tokio::join!(number(&call, "second"), number(&call, "third"), asking)
        };
        let Outcome::Stopped(Stop::Asks(questions), rounds) = run(&call, handler).await else { panic!("not asked") };
        assert_eq!(rounds.rounds.len(), questions.len());
        assert!(questions.iter().enumerate().all(|(index, (number, _))| index == *number));
    }

    #[tokio::test]
    async fn when_the_handler_is_over_nobody_is_asked() {
        let call = Call::new("x".to_owned(), Way::Replay, Past::default());
        assert_eq!(run(&call, async { 1 }).await, Outcome::Done(1));
        assert_eq!(number(&call, "late").await, None);
    }

    #[tokio::test]
    async fn what_was_done_once_is_not_done_again() {
        let mut past = Past::default();
        let mut done = 0;
        for turn in 0..3 {
            let call = Call::new("x".to_owned(), Way::Replay, past);
            let handler = async {
                let (first, begun): (i64, ()) = (
                    Arc::clone(&call)
                        .once(async {
                            done += 1;
                            Ok::<_, ()>(7)
                        })
                        .await
                        .unwrap(),
                    Arc::clone(&call).once(async { Ok::<_, ()>(()) }).await.unwrap(),
                );
                let answer = number(&call, "first").await;
                let second = Arc::clone(&call).once(async { Ok::<_, ()>("two".to_owned()) }).await.unwrap();
                (first, begun, answer, second, number(&call, "second").await)
            };
            match run(&call, handler).await {
                Outcome::Stopped(Stop::Asks(_), mut now) if turn < 2 => {
                    let message = ["first", "second"][turn];
                    now.rounds[turn] = answered(message, json!(turn));
                    assert_eq!(now.done.len(), turn + 2);
                    past = now;
                }
                outcome => {
                    assert_eq!(outcome, Outcome::Done((7, (), Some(0), "two".to_owned(), Some(1))));
                    past = Past::default();
                }
            }
        }
        assert_eq!(done, 1);
    }

    #[tokio::test]
    async fn what_failed_is_done_again_and_another_deed_is_an_error() {
        let call = Call::new("x".to_owned(), Way::Replay, Past::default());
        let handler = async {
            let failed = Arc::clone(&call).once(async { Err::<u8, _>("no") }).await;
            (failed, number(&call, "first").await)
        };
        let Outcome::Stopped(Stop::Asks(_), now) = run(&call, handler).await else { panic!("not asked") };
        assert_eq!(now.done, Vec::new());
        let now = Past { done: vec![Some(json!("text"))], ..Past::default() };
        let call = Call::new("x".to_owned(), Way::Replay, now);
        let other = Arc::clone(&call).once(async { Ok::<u8, ()>(1) });
        assert!(matches!(run(&call, other).await, Outcome::Stopped(Stop::OtherAct(0), _)));
    }

    #[tokio::test]
    async fn who_can_be_asked_at_once_is() {
        struct Person(Reply);
        impl Elicitor for Person {
            fn elicit(&self, _: Question) -> BoxFuture<'_, Reply> {
                Box::pin(std::future::ready(self.0.clone()))
            }
        }
        let outcome_of = async |reply: Reply| outcome(Way::Direct(Arc::new(Person(reply))), Vec::new()).await;
        let answer = |n: Value| Reply::Accepted(Map::from_iter([("n".to_owned(), n)]));
        assert_eq!(outcome_of(answer(json!(3))).await, Outcome::Done(vec![Some(3), Some(3)]));
        assert_eq!(outcome_of(Reply::Declined).await, Outcome::Done(vec![None, None]));
        assert!(matches!(outcome_of(answer(json!("x"))).await, Outcome::Stopped(Stop::Unfit(0, _), _)));
    }
}
