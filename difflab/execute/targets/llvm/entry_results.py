"""The LLVM IR that writes the results of a call to given memory, or makes new objects of them.

A part of `entry_code`, which says how fields and loops are written.
"""

from __future__ import annotations

WRITE = """
; The array for a result in given memory: the memory itself, or an item of it.
define internal ptr @target(ptr %call, ptr %out, i64 %k) {
  ${several = call.tuple i64}
  %single = icmp eq i64 %several, 0
  br i1 %single, label %alone, label %item
alone:
  ret ptr %out
item:
  %items = getelementptr i8, ptr %out, i64 {items}
  %place = getelementptr ptr, ptr %items, i64 %k
  %found = load ptr, ptr %place
  ret ptr %found
}

; Whether results can be written to given memory; writes them if asked.
define internal i1 @write(ptr %call, ptr %out, i1 %asked) {
  ${count = call.result_count i64}
  ${records = call.results ptr}
  ${several = call.tuple i64}
  %single = icmp eq i64 %several, 0
  br i1 %single, label %start, label %grouped
grouped:
  ${type = out.type ptr}
  ${tuple_type = call.tuple_type ptr}
  %exact = icmp eq ptr %type, %tuple_type
  br i1 %exact, label %counted, label %no
counted:
  ${size = out.size i64}
  %complete = icmp eq i64 %size, %count
  br i1 %complete, label %start, label %no
start:
  br label %next
  ${each {RESULT}: start written yes}
  %object = call ptr @target(ptr %call, ptr %out, i64 %k)
  %data = call ptr @elements(ptr %call, ptr %object, ptr %record, i32 {WRITABLE})
  %unknown = icmp eq ptr %data, null
  br i1 %unknown, label %no, label %fits
fits:
  br i1 %asked, label %copy, label %written
copy:
  ${source = record.source ptr}
  ${bytes = record.bytes i64}
  call void @copy(ptr %data, ptr %source, i64 %bytes)
  br label %written
written:
  br label %next
yes:
  ret i1 true
no:
  ret i1 false
}
"""

FILL = """
; Writes the results to given memory that has been checked, and that no code has had the lock since.
define internal void @fill(ptr %call, ptr %out) {
  ${count = call.result_count i64}
  ${records = call.results ptr}
  br label %next
  ${each {RESULT}: 0 each end}
  %object = call ptr @target(ptr %call, ptr %out, i64 %k)
  ${data = object.data ptr}
  ${source = record.source ptr}
  ${bytes = record.bytes i64}
  call void @copy(ptr %data, ptr %source, i64 %bytes)
  br label %next
end:
  ret void
}
"""

RETURN = """
; A new float or array with a result; null, with an exception, if there is no memory.
define internal ptr @made(ptr %call, ptr %record) {
  ${rank = record.rank i64}
  ${source = record.source ptr}
  %scalar = icmp eq i64 %rank, 0
  br i1 %scalar, label %float, label %array
float:
  %value = load double, ptr %source
  %number = call ptr @PyFloat_FromDouble(double %value)
  ret ptr %number
array:
  ${new_array = call.new_array ptr}
  ${array_type = call.array_type ptr}
  ${shape = record.shape ptr}
  %rank32 = trunc i64 %rank to i32
  %object = call ptr %new_array(ptr %array_type, i32 %rank32, ptr %shape,
    i32 {DOUBLE}, ptr null, ptr null, i32 0, i32 0, ptr null)
  %failed = icmp eq ptr %object, null
  br i1 %failed, label %end, label %fill
fill:
  ${data = object.data ptr}
  ${bytes = record.bytes i64}
  call void @copy(ptr %data, ptr %source, i64 %bytes)
  br label %end
end:
  ret ptr %object
}

; A tuple of results, which it takes, as the call returns it; null with an exception if that failed.
define internal ptr @grouped(ptr %call, ptr %tuple) {
  ${group = call.group ptr}
  %plain = icmp eq ptr %group, null
  br i1 %plain, label %asis, label %grouped
asis:
  ret ptr %tuple
grouped:
  %built = call ptr @PyObject_CallOneArg(ptr %group, ptr %tuple)
  call void @Py_DecRef(ptr %tuple)
  ret ptr %built
}

; All results as the call returns them; null with an exception if that failed.
define internal ptr @returned(ptr %call) {
  ${records = call.results ptr}
  ${count = call.result_count i64}
  ${several = call.tuple i64}
  %single = icmp eq i64 %several, 0
  br i1 %single, label %one, label %many
one:
  %only = call ptr @made(ptr %call, ptr %records)
  ret ptr %only
many:
  %tuple = call ptr @PyTuple_New(i64 %count)
  %failed = icmp eq ptr %tuple, null
  br i1 %failed, label %none, label %next
  ${each {RESULT}: many set full}
  %item = call ptr @made(ptr %call, ptr %record)
  %lost = icmp eq ptr %item, null
  br i1 %lost, label %drop, label %set
set:
  %ignored = call i32 @PyTuple_SetItem(ptr %tuple, i64 %k, ptr %item)
  br label %next
drop:
  call void @Py_DecRef(ptr %tuple)
  br label %none
full:
  %whole = call ptr @grouped(ptr %call, ptr %tuple)
  ret ptr %whole
none:
  ret ptr null
}
"""

BATCHED = """
; The number of points of a batch, whose arrays are then in the table x; 0 for other arguments.
define internal i64 @points(ptr %call, ptr %batch, ptr %args) {
  %first = load ptr, ptr %args
  ${type = first.type ptr}
  ${array_type = call.array_type ptr}
  %exact = icmp eq ptr %type, %array_type
  br i1 %exact, label %array, label %no
array:
  ${rank = first.rank i32}
  ${axes = batch.rank i64}
  %axes32 = trunc i64 %axes to i32
  %ranked = icmp eq i32 %rank, %axes32
  br i1 %ranked, label %measured, label %no
measured:
  ${lengths = first.shape ptr}
  %points = load i64, ptr %lengths
  ${least = batch.least i64}
  ${most = batch.most i64}
  %enough = icmp uge i64 %points, %least
  %few = icmp ule i64 %points, %most
  %within = and i1 %enough, %few
  br i1 %within, label %wanted, label %no
wanted:
  ${shape = batch.shape ptr}
  store i64 %points, ptr %shape
  ${x = batch.x ptr}
  %record.rank = getelementptr i64, ptr %batch, i64 {lengths}
  ${count = call.argument_count i64}
  br label %next
next:
  %k = phi i64 [0, %wanted], [%k.next, %kept]
  %done = icmp eq i64 %k, %count
  br i1 %done, label %yes, label %each
each:
  %k.next = add i64 %k, 1
  %place = getelementptr ptr, ptr %args, i64 %k
  %object = load ptr, ptr %place
  %data = call ptr @elements(ptr %call, ptr %object, ptr %record.rank, i32 {READABLE})
  %unknown = icmp eq ptr %data, null
  br i1 %unknown, label %no, label %kept
kept:
  %slot = getelementptr ptr, ptr %x, i64 %k
  store ptr %data, ptr %slot
  br label %next
yes:
  ret i64 %points
no:
  ret i64 0
}

; A new array for a result of a batch, whose columns are then in the table y; null if that failed.
define internal ptr @store(ptr %call, ptr %record, i64 %points) {
  ${new_array = call.new_array ptr}
  ${array_type = call.array_type ptr}
  ${rank = record.rank i64}
  ${shape = record.shape ptr}
  store i64 %points, ptr %shape
  %rank32 = trunc i64 %rank to i32
  %object = call ptr %new_array(ptr %array_type, i32 %rank32, ptr %shape,
    i32 {DOUBLE}, ptr null, ptr null, i32 0, i32 {COLUMNS}, ptr null)
  %failed = icmp eq ptr %object, null
  br i1 %failed, label %end, label %made
made:
  ${data = object.data ptr}
  ${columns = record.columns i64}
  ${addresses = record.addresses ptr}
  br label %next
next:
  %j = phi i64 [0, %made], [%j.next, %column]
  %done = icmp eq i64 %j, %columns
  br i1 %done, label %end, label %column
column:
  %j.next = add i64 %j, 1
  %first = mul i64 %j, %points
  %start = getelementptr double, ptr %data, i64 %first
  %slot = getelementptr ptr, ptr %addresses, i64 %j
  store ptr %start, ptr %slot
  br label %next
end:
  ret ptr %object
}

; Copies the rows of a packed batch to columns, which are then in the table x.
define internal void @staged(ptr %batch, ptr %stage, i64 %points) {
  ${x = batch.x ptr}
  ${columns = batch.inputs i64}
  %rows = load ptr, ptr %x
  br label %column
column:
  %j = phi i64 [0, %0], [%j.next, %copied]
  %j.next = add i64 %j, 1
  %source = getelementptr double, ptr %rows, i64 %j
  %begin = mul i64 %j, %points
  %target = getelementptr double, ptr %stage, i64 %begin
  %slot = getelementptr ptr, ptr %x, i64 %j
  store ptr %target, ptr %slot
  br label %point
point:
  %i = phi i64 [0, %column], [%i.next, %point]
  %i.next = add i64 %i, 1
  %element = mul i64 %i, %columns
  %from = getelementptr double, ptr %source, i64 %element
  %to = getelementptr double, ptr %target, i64 %i
  %number = load double, ptr %from
  store double %number, ptr %to
  %whole = icmp eq i64 %i.next, %points
  br i1 %whole, label %copied, label %point
copied:
  %done = icmp eq i64 %j.next, %columns
  br i1 %done, label %end, label %column
end:
  ret void
}

; The results of a batch, in a new tuple, as the call returns them; null with an exception if that
; failed.
define internal ptr @batched(ptr %call, ptr %batch, ptr %tuple, i64 %points) {
  ${records = batch.stores ptr}
  ${count = call.result_count i64}
  br label %next
  ${each {STORE}: 0 set full}
  %item = call ptr @store(ptr %call, ptr %record, i64 %points)
  %lost = icmp eq ptr %item, null
  br i1 %lost, label %drop, label %set
set:
  %ignored = call i32 @PyTuple_SetItem(ptr %tuple, i64 %k, ptr %item)
  br label %next
drop:
  call void @Py_DecRef(ptr %tuple)
  br label %none
full:
  ${stage = batch.stage ptr}
  %direct = icmp eq ptr %stage, null
  br i1 %direct, label %ready, label %rows
rows:
  call void @staged(ptr %batch, ptr %stage, i64 %points)
  br label %ready
ready:
  ${long = batch.long i64}
  %slow = icmp uge i64 %points, %long
  call void @compute(ptr %call, ptr %batch, i64 %points, i1 %slow)
  ${several = call.tuple i64}
  %single = icmp eq i64 %several, 0
  br i1 %single, label %one, label %many
one:
  ${only = tuple.items ptr}
  call void @Py_IncRef(ptr %only)
  call void @Py_DecRef(ptr %tuple)
  ret ptr %only
many:
  %whole = call ptr @grouped(ptr %call, ptr %tuple)
  ret ptr %whole
none:
  ret ptr null
}
"""
