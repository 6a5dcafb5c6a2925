//! Declared inputs.

use insta::assert_snapshot;

use super::told;

#[test]
fn inputs() {
    let source = r"
playbook: p
inputs:
  a: string
  b:
  c: { type: strnig }
  d: { type: integer, default: x }
  e: { type: string, default: 1.10 }
  f: { type: array, default: a }
  g: { enum: [a, b], default: c }
  h: { type: integer, enum: [1, x] }
  i: { required: yes }
  j: { required: true, default: x }
  my-input: {}
  in: {}
  k: { type: number, default: .inf }
  l: { type: integer, default: 1.5 }
  m: { optional: true }
  n: { secret: true, default: x }
states: { s: { run: x } }
";
    assert_snapshot!(told(source), @r#"
    p.yaml:3:6: error: input `a` must be a mapping, not a string
      help: write `a: { type: string }`
    p.yaml:4:4: error: input `b` must be a mapping, not nothing
      help: write `b: { type: string }`
    p.yaml:5:14: error: `type` must be `string` or `integer` or `number` or `boolean` or `array` or `object`, not `strnig`
      help: did you mean `string`?
    p.yaml:6:32: error: the default must be a whole number, not a string
    p.yaml:7:31: error: the default must be a string, not a number
      help: put quotes around it: "1.10"
    p.yaml:8:30: error: the default must be a list, not a string
    p.yaml:9:31: error: the default is not among the values of `enum`
    p.yaml:10:33: error: a value of `enum` must be a whole number, not a string
    p.yaml:11:18: error: `required` must be `true` or `false`, not a string
    p.yaml:12:33: warning: a required input never uses its default
      help: leave one of them out
    p.yaml:13:3: error: an input cannot be called `my-input`
      help: use letters, digits and `_`, not a digit first: `target_dir`
    p.yaml:14:3: error: an input cannot be called `in`
      help: use letters, digits and `_`, not a digit first: `target_dir`
    p.yaml:15:31: error: `.inf` is not a finite number
      help: quote it if it is text
    p.yaml:15:31: error: the default must be a number, not nothing
    p.yaml:16:32: error: the default must be a whole number, not a number
    p.yaml:17:8: error: unknown key `optional` in an input
      help: known: `type`, `required`, `default`, `description`, `enum`, `secret`
    p.yaml:18:31: error: a secret input cannot have a default
      help: leave the default out; a secret is given when the run is started
    "#);
}
