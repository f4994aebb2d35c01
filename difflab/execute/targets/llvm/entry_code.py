"""The LLVM IR of the function by which Python calls compiled code; see `entry`.

A field ``${name = base.field kind}`` is loaded from the record of the call, of an argument or of a
result, or from an object of Python; ``${each SIZE: before last after}`` begins a loop over records.
"""

from __future__ import annotations

import re

from difflab.execute.lower.ops import FLOAT
from difflab.execute.targets.llvm.entry_results import BATCHED, FILL, RETURN, WRITE
from difflab.execute.targets.llvm.python_objects import WORDS, Layouts

CALL = (
    "general",  # the function that is called as a method with all other arguments
    "busy",  # 1 while the memory is used, by a call in another thread or further up the stack
    "run", "x", "y", "v",  # the code ``run(x, y, v, 1)`` of one point; 0 if there is none
    "batch",  # the address of a record of BATCH, or 0
    "fault",  # the address of a word that is not 0 if the run failed; 0 if none fails or raises
    "release",  # whether other threads can run meanwhile
    "argument_count", "arguments",  # the address of records of ARGUMENT
    "result_count", "results",  # the address of records of RESULT
    "group",  # constructs the returned object from a tuple of results, or 0
    "tuple",  # whether several results, or one, are in a tuple
    "out",  # the interned name "out"; 0 if results cannot be written to given memory
    "float_type", "tuple_type", "array_type", "float64", "new_array",
)  # fmt: skip
"""The words of the record of a compiled function."""
ARGUMENT = ("rank", "shape", "memory", "bytes", "links", "link_count")
"""The words of the record of an argument: rank −1 is a float.

Its elements are copied to `memory`; or for each link, an address of a word and an offset, the
word becomes the address of the element there.
"""
RESULT = ("rank", "shape", "source", "bytes")
"""The words of the record of a result, which is a float if its rank is 0."""
BATCH = (
    "run", "x", "y", "v",  # the code ``run(x, y, v, points)``: x and y are tables of addresses
    "least", "most",  # the fewest and the most points
    "long",  # the points from which other threads can run meanwhile
    "rank", "shape",  # of each argument, whose first length is the number of points
    "stage", "inputs",  # memory for the columns of a packed argument, or 0, and their number
    "stores",  # the address of records of STORE
)  # fmt: skip
"""The words of the record of the code for batches.

The arguments are arrays of one axis for each input, or one array of rows of all inputs.
"""
STORE = ("rank", "shape", "columns", "addresses")
"""The words of the record of a result of a batch, whose columns are contiguous."""

_RECORDS = {
    "call": (CALL,),
    "record": (ARGUMENT, RESULT, STORE),
    "batch": (BATCH,),
    "code": (BATCH,),  # or, as its first words are among those, `run` in CALL
}

SYMBOLS = (
    "PyMethod_New",
    "PyObject_Vectorcall",
    "PyObject_CallOneArg",
    "PyFloat_FromDouble",
    "PyTuple_New",
    "PyTuple_SetItem",
    "PyErr_Occurred",
    "PyEval_SaveThread",
    "PyEval_RestoreThread",
    "Py_IncRef",
    "Py_DecRef",
)
"""The functions of Python that it calls."""
_READABLE = 0x0001 | 0x0100  # NumPy's flags: C-contiguous, aligned
_WRITABLE = _READABLE | 0x0400
_COLUMNS = 0x0002  # a new array is Fortran-contiguous

_DECLARATIONS = """
declare ptr @PyMethod_New(ptr, ptr)
declare ptr @PyObject_Vectorcall(ptr, ptr, i64, ptr)
declare ptr @PyObject_CallOneArg(ptr, ptr)
declare ptr @PyFloat_FromDouble(double)
declare ptr @PyTuple_New(i64)
declare i32 @PyTuple_SetItem(ptr, i64, ptr)
declare ptr @PyErr_Occurred()
declare ptr @PyEval_SaveThread()
declare void @PyEval_RestoreThread(ptr)
declare void @Py_IncRef(ptr)
declare void @Py_DecRef(ptr)
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
"""

_COPY = """
; Copies elements; a few of them faster than a call of the C library does.
define internal void @copy(ptr %target, ptr %source, i64 %bytes) {
  %few = icmp ule i64 %bytes, 64
  br i1 %few, label %elements, label %many
many:
  call void @llvm.memcpy.p0.p0.i64(
    ptr align 8 %target, ptr align 8 %source, i64 %bytes, i1 false)
  ret void
elements:
  %offset = phi i64 [0, %0], [%next, %element]
  %more = icmp ult i64 %offset, %bytes
  br i1 %more, label %element, label %end
element:
  %from = getelementptr i8, ptr %source, i64 %offset
  %to = getelementptr i8, ptr %target, i64 %offset
  %number = load i64, ptr %from, align 8
  store i64 %number, ptr %to, align 8
  %next = add i64 %offset, 8
  br label %elements
end:
  ret void
}
"""

_ELEMENTS = """
; The address of the elements of an array that is as a record states; null for anything else.
define internal ptr @elements(ptr %call, ptr %object, ptr %record, i32 %wanted) {
  ${type = object.type ptr}
  ${array_type = call.array_type ptr}
  %exact = icmp eq ptr %type, %array_type
  br i1 %exact, label %array, label %other
array:
  ${dtype = object.dtype ptr}
  ${float64 = call.float64 ptr}
  %double = icmp eq ptr %dtype, %float64
  ${flags = object.flags i32}
  %held = and i32 %flags, %wanted
  %usable = icmp eq i32 %held, %wanted
  ${rank32 = object.rank i32}
  %rank = zext i32 %rank32 to i64
  ${rank_wanted = record.rank i64}
  %ranked = icmp eq i64 %rank, %rank_wanted
  %both = and i1 %double, %usable
  %all = and i1 %both, %ranked
  br i1 %all, label %compare, label %other
compare:
  ${shape = object.shape ptr}
  ${shape_wanted = record.shape ptr}
  br label %axes
axes:
  %axis = phi i64 [0, %compare], [%next, %axis.compared]
  %done = icmp eq i64 %axis, %rank
  br i1 %done, label %found, label %axis.compared
axis.compared:
  %a = getelementptr i64, ptr %shape, i64 %axis
  %b = getelementptr i64, ptr %shape_wanted, i64 %axis
  %length = load i64, ptr %a
  %length.wanted = load i64, ptr %b
  %equal = icmp eq i64 %length, %length.wanted
  %next = add i64 %axis, 1
  br i1 %equal, label %axes, label %other
found:
  ${data = object.data ptr}
  ret ptr %data
other:
  ret ptr null
}
"""

_READ = """
; Copies or links the arguments; false if one is not as its record states.
define internal i1 @read(ptr %call, ptr %args) {
  ${count = call.argument_count i64}
  ${records = call.arguments ptr}
  br label %next
  ${each {ARGUMENT}: 0 stored yes}
  %place = getelementptr ptr, ptr %args, i64 %k
  %object = load ptr, ptr %place
  ${rank = record.rank i64}
  ${memory = record.memory ptr}
  %scalar = icmp slt i64 %rank, 0
  br i1 %scalar, label %float, label %array
float:
  ${type = object.type ptr}
  ${float_type = call.float_type ptr}
  %exact = icmp eq ptr %type, %float_type
  br i1 %exact, label %number, label %no
number:
  ${value = object.number double}
  store double %value, ptr %memory
  br label %stored
array:
  %data = call ptr @elements(ptr %call, ptr %object, ptr %record, i32 {READABLE})
  %unknown = icmp eq ptr %data, null
  br i1 %unknown, label %no, label %elements
elements:
  ${link_count = record.link_count i64}
  %copied = icmp eq i64 %link_count, 0
  br i1 %copied, label %copy, label %link
copy:
  ${bytes = record.bytes i64}
  call void @copy(ptr %memory, ptr %data, i64 %bytes)
  br label %stored
link:
  ${links = record.links ptr}
  br label %linking
linking:
  %l = phi i64 [0, %link], [%l.next, %linking]
  %l.next = add i64 %l, 1
  %l.word = mul i64 %l, 2
  %l.place = getelementptr i64, ptr %links, i64 %l.word
  %l.behind = getelementptr i64, ptr %l.place, i64 1
  %slot = load ptr, ptr %l.place
  %offset = load i64, ptr %l.behind
  %element = getelementptr i8, ptr %data, i64 %offset
  store ptr %element, ptr %slot
  %linked = icmp eq i64 %l.next, %link_count
  br i1 %linked, label %stored, label %linking
stored:
  br label %next
yes:
  ret i1 true
no:
  ret i1 false
}
"""

_COMPUTE = """
; Runs the code of a record for some points; other threads can run meanwhile if that takes long.
define internal void @compute(ptr %call, ptr %code, i64 %points, i1 %slow) {
  ${run = code.run ptr}
  ${x = code.x ptr}
  ${y = code.y ptr}
  ${v = code.v ptr}
  %busy = getelementptr i64, ptr %call, i64 {busy}
  store i64 1, ptr %busy
  br i1 %slow, label %long, label %short
short:
  call void %run(ptr %x, ptr %y, ptr %v, i64 %points)
  br label %ran
long:
  %thread = call ptr @PyEval_SaveThread()
  call void %run(ptr %x, ptr %y, ptr %v, i64 %points)
  call void @PyEval_RestoreThread(ptr %thread)
  br label %ran
ran:
  store i64 0, ptr %busy
  ret void
}

; Whether the code has left a fault, which is cleared.
define internal i1 @failed(ptr %fault) {
  %left = load i64, ptr %fault
  store i64 0, ptr %fault
  %any = icmp ne i64 %left, 0
  ret i1 %any
}
"""

_ENTRY = """
define ptr @entry(ptr %self, ptr %args, i64 %flagged, ptr %names) {
  %behind = getelementptr i8, ptr %self, i64 {DATA}
  %call = load ptr, ptr %behind
  %given = and i64 %flagged, 9223372036854775807
  ${argument_count = call.argument_count i64}
  ${busy = call.busy i64}
  %right = icmp eq i64 %given, %argument_count
  %free = icmp eq i64 %busy, 0
  %ready = and i1 %right, %free
  br i1 %ready, label %counted, label %general
counted:
  %positional = icmp eq ptr %names, null
  br i1 %positional, label %arguments, label %keywords
keywords:
  ${named = names.size i64}
  %one = icmp eq i64 %named, 1
  br i1 %one, label %keyword, label %general
keyword:
  ${name = names.items ptr}
  ${out_name = call.out ptr}
  %known = icmp eq ptr %name, %out_name
  br i1 %known, label %memory, label %general
memory:
  %place = getelementptr ptr, ptr %args, i64 %given
  %last = load ptr, ptr %place
  %fits = call i1 @write(ptr %call, ptr %last, i1 false)
  br i1 %fits, label %arguments, label %general
arguments:
  %out = phi ptr [null, %counted], [%last, %memory]
  ${run = call.run ptr}
  %none = icmp eq ptr %run, null
  br i1 %none, label %batch, label %point
point:
  %readable = call i1 @read(ptr %call, ptr %args)
  br i1 %readable, label %computed, label %batch
batch:
  ${batches = call.batch ptr}
  %scalar = icmp eq ptr %batches, null
  %given.memory = icmp ne ptr %out, null
  %other = or i1 %scalar, %given.memory
  br i1 %other, label %general, label %arrays
arrays:
  %points = call i64 @points(ptr %call, ptr %batches, ptr %args)
  %unusual = icmp eq i64 %points, 0
  br i1 %unusual, label %general, label %tuple
tuple:
  ${result_count = call.result_count i64}
  %empty = call ptr @PyTuple_New(i64 %result_count)
  %lost = icmp eq ptr %empty, null
  br i1 %lost, label %failed, label %collected
collected:
  ; A new tuple may collect garbage. Finalizers may call this function with other arrays, give these
  ; arrays other shapes and memory, or let another thread begin a call.
  ${running = call.busy i64}
  %idle = icmp eq i64 %running, 0
  br i1 %idle, label %again, label %changed
again:
  %left = call i64 @points(ptr %call, ptr %batches, ptr %args)
  %same.points = icmp eq i64 %left, %points
  br i1 %same.points, label %columns, label %changed
changed:
  call void @Py_DecRef(ptr %empty)
  br label %general
columns:
  %whole = call ptr @batched(ptr %call, ptr %batches, ptr %empty, i64 %points)
  ret ptr %whole
computed:
  %code = getelementptr i64, ptr %call, i64 {run}
  ${slow = call.release i64}
  %long = icmp ne i64 %slow, 0
  call void @compute(ptr %call, ptr %code, i64 1, i1 %long)
  ${fault = call.fault ptr}
  %sound = icmp eq ptr %fault, null
  br i1 %sound, label %results, label %checked
checked:
  %faulty = call i1 @failed(ptr %fault)
  %exception = call ptr @PyErr_Occurred()
  %raised = icmp ne ptr %exception, null
  br i1 %raised, label %failed, label %tested
tested:
  br i1 %faulty, label %general, label %results
results:
  %fresh = icmp eq ptr %out, null
  br i1 %fresh, label %new, label %given.out
given.out:
  ${release = call.release i64}
  %kept = icmp eq i64 %release, 0
  %unchanged = and i1 %sound, %kept
  br i1 %unchanged, label %fill, label %into
fill:
  call void @fill(ptr %call, ptr %out)
  br label %same
new:
  %result = call ptr @returned(ptr %call)
  ret ptr %result
into:
  %written = call i1 @write(ptr %call, ptr %out, i1 true)
  br i1 %written, label %same, label %general
same:
  call void @Py_IncRef(ptr %out)
  ret ptr %out
failed:
  ret ptr null
general:
  ${function = call.general ptr}
  %method = call ptr @PyMethod_New(ptr %function, ptr %self)
  %unbound = icmp eq ptr %method, null
  br i1 %unbound, label %failed, label %bound
bound:
  %answer = call ptr @PyObject_Vectorcall(ptr %method, ptr %args, i64 %flagged, ptr %names)
  call void @Py_DecRef(ptr %method)
  ret ptr %answer
}
"""

_PARTS = (_DECLARATIONS, _COPY, _ELEMENTS, _READ, WRITE, FILL, RETURN, _COMPUTE, BATCHED, _ENTRY)
_EACH = re.compile(r"  \$\{each (\{\w+\}): (\w+) (\w+) (\w+)\}\n")
"""The head of a loop: the size of a record, the blocks before it, at its end and after it."""
_LOOP = """next:
  %k = phi i64 [0, %{before}], [%k.next, %{last}]
  %done = icmp eq i64 %k, %count
  br i1 %done, label %{after}, label %each
each:
  %k.next = add i64 %k, 1
  %word = mul i64 %k, {size}
  %record = getelementptr i64, ptr %records, i64 %word
"""
_FIELD = re.compile(r"\$\{(\w+) = (\w+)\.(\w+) (\w+)\}")


def text(layouts: Layouts) -> str:
    """Return the LLVM IR for objects of these layouts."""
    whole = _EACH.sub(lambda match: _loop(*match.groups()), "".join(_PARTS))
    whole = _FIELD.sub(lambda match: _load(layouts, *match.groups()), whole)
    constants = {
        "{ARGUMENT}": len(ARGUMENT),
        "{RESULT}": len(RESULT),
        "{READABLE}": _READABLE,
        "{WRITABLE}": _WRITABLE,
        "{DOUBLE}": FLOAT.num,
        "{STORE}": len(STORE),
        "{busy}": CALL.index("busy"),
        "{run}": CALL.index("run"),
        "{lengths}": BATCH.index("rank"),
        "{COLUMNS}": _COLUMNS,
        "{items}": layouts.items,
        "{DATA}": WORDS,
    }
    for name, value in constants.items():
        whole = whole.replace(name, str(value))
    return whole


def _loop(size: str, before: str, last: str, after: str) -> str:
    """Return the instructions that begin each step of a loop over `count` `records`."""
    return _LOOP.format(size=size, before=before, last=last, after=after)


def _load(layouts: Layouts, name: str, base: str, field: str, kind: str) -> str:
    """Return the instructions that load a word of a record, or a field of an object."""
    if base in _RECORDS:
        offset = 8 * next(words.index(field) for words in _RECORDS[base] if field in words)
    else:
        offset = getattr(layouts, field)
    pointer = f"%at.{name}"
    return (
        f"{pointer} = getelementptr i8, ptr %{base}, i64 {offset}\n"
        f"  %{name} = load {kind}, ptr {pointer}"
    )
