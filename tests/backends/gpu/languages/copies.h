/* Copies to shared memory that go on while their thread does.
 *
 * What is copied comes when its thread waits, and not before: until then a NaN is there, or -1.  So a
 * wait that is missing gives wrong numbers; a barrier that is missing is a race, as it is when the
 * copy begins (somebody may still read the place) and when it ends.
 */
#pragma once

namespace slw {

void async_copy(void *to, const void *from, int bytes);
void async_commit();
void async_wait(int groups);

} // namespace slw
