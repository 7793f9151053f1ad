/* The life of one remote object, with three workers: its owner, and two users A and C (docs/remote.md).
 *
 * Each of the three may fork two references, to whichever other worker; every reference may be used in messages to
 * the owner (a fetch, or an argument) as often as it likes, and is dropped at some time. Messages arrive in any order, after
 * any time. That they are lost and sent again is part of that; that they are repeated is the numbers' affair
 * (executor/remote/channel.h): with -DNO_NUMBERS what is repeated acts again, and the check fails.
 *
 *     spin -a protocol.pml && cc -O2 -DSAFETY -DCOLLAPSE -o pan pan.c && ./pan -m100000
 *
 * -DOWN         the owner has made the object itself; else A has asked for it
 * Breaks, each of which the check must find:
 * -DNO_HOLDS    a reference is deleted at once: G2 is given up
 * -DNO_EARLY    what is deleted before it is known is forgotten
 * -DNO_NUMBERS  a repeated message acts again
 *
 * Four things take no state of their own, for they only put off what may be put off anyway: a call on its way to
 * the child's holder (the child does nothing until it has come), an acknowledgement on its way back (the parent
 * does not delete yet), a reference that was dropped and is held by a message (it does nothing any more), and a use
 * on its way to the owner (its reference is held, hence live: it may arrive as long as that is).
 */

#define N 7           /* fork 0: A's, by creation; 1, 2: made by the owner; 3, 4: by A; 5, 6: by C */

/* A fork, at its holder: */
#define UNUSED 0
#define LIVE 1
#define DELETED 2     /* the owner is told, or will be */

/* A message that the owner gets: */
#define UNSENT 0
#define SENT 1
#define RECEIVED 2

byte state[N];
byte known_by[N];     /* the message that makes it known: a create (fork 0), or an add_fork */
bool told[N];         /* the owner has its delete */
byte parent[N];       /* while known_by is SENT */
bool at_c[N];         /* its holder: C, else A */
bool known[N];        /* the owner's table */
bool early[N];        /* the owner's deletes of what it does not know */
#ifdef NO_NUMBERS
bool repeated[N];
#endif
bool created, freed;
bool pinned;          /* the object is held at its owner: by its maker, by a use, or by a reference that came home */

#define ANY_KNOWN (known[0] || known[1] || known[2] || known[3] || known[4] || known[5] || known[6])
#define ANY_LIVE (state[0] == LIVE || state[1] == LIVE || state[2] == LIVE || state[3] == LIVE || state[4] == LIVE || \
                  state[5] == LIVE || state[6] == LIVE)
/* A live reference may have been sent to the owner in a message that arrives now. */
#define FREE_IF_UNUSED if :: created && !pinned && !ANY_KNOWN -> freed = true; assert(!ANY_LIVE) :: else fi

#ifdef NO_HOLDS
#define HELD(f) false
#else
#define HOLDS_PARENT(c, f) (known_by[c] == SENT && parent[c] == f)
#define HELD(f) (known_by[0] == SENT && f == 0 || \
                 HOLDS_PARENT(3, f) || HOLDS_PARENT(4, f) || HOLDS_PARENT(5, f) || HOLDS_PARENT(6, f))
#endif

/* The owner knows its own forks as it makes them. */
#define OWNER_FORKS(f, c) \
  :: state[f] == UNUSED && pinned && (f == 1 || state[1] != UNUSED) -> \
     d_step { state[f] = LIVE; at_c[f] = c; known_by[f] = RECEIVED; known[f] = true }

/* A user forks `p` for the other user, and tells the owner. */
#define USER_FORKS(f, p) \
  :: state[f] == UNUSED && state[p] == LIVE && at_c[p] == (f >= 5) && (f == 3 || f == 5 || state[f - 1] != UNUSED) -> \
     d_step { state[f] = LIVE; at_c[f] = (f < 5); known_by[f] = SENT; parent[f] = p }
#define USER_FORKS_ANY(f) \
  USER_FORKS(f, 0) USER_FORKS(f, 1) USER_FORKS(f, 2) USER_FORKS(f, 3) USER_FORKS(f, 4) USER_FORKS(f, 5) USER_FORKS(f, 6)

#define BECOMES_KNOWN(f) \
  assert(!freed); \
  if :: f == 0 -> created = true :: else fi; \
  if :: early[f] -> early[f] = false :: else -> known[f] = true fi; \
  FREE_IF_UNUSED

#ifdef NO_EARLY
#define NOTE_EARLY(f) skip
#else
#define NOTE_EARLY(f) early[f] = true
#endif

/* What all forks may do. What is over takes the same values, however it came to that. */
#define FORK(f) \
  :: state[f] == LIVE && !HELD(f) -> d_step { state[f] = DELETED; at_c[f] = false } \
  :: known_by[f] == SENT -> d_step { known_by[f] = RECEIVED; parent[f] = 0; BECOMES_KNOWN(f) } \
  :: state[f] == DELETED && !told[f] -> d_step { \
       told[f] = true; \
       if :: known[f] -> known[f] = false; FREE_IF_UNUSED \
          :: !known[f] && known_by[f] == SENT -> NOTE_EARLY(f) \
          :: else fi } \
  :: state[f] == LIVE && !pinned -> d_step { assert(!freed); pinned = true }

#ifdef NO_NUMBERS
#define REPEAT(f) \
  :: known_by[f] == RECEIVED && !repeated[f] -> d_step { repeated[f] = true; known[f] = true }
#define REPEATS REPEAT(3) REPEAT(4) REPEAT(5) REPEAT(6)
#else
#define REPEATS
#endif

#define AT_REST(f) (state[f] == UNUSED || state[f] == DELETED && told[f] && !known[f] && !early[f])

init {
  d_step {
#ifdef OWN
    created = true; pinned = true;
#else
    state[0] = LIVE; known_by[0] = SENT;
#endif
  }
  do
  FORK(0) FORK(1) FORK(2) FORK(3) FORK(4) FORK(5) FORK(6)
  OWNER_FORKS(1, false) OWNER_FORKS(1, true) OWNER_FORKS(2, false) OWNER_FORKS(2, true)
  USER_FORKS_ANY(3) USER_FORKS_ANY(4) USER_FORKS_ANY(5) USER_FORKS_ANY(6)
  REPEATS
  :: pinned -> d_step { pinned = false; FREE_IF_UNUSED }
  /* Nothing is left to happen: nothing is held, and the object is freed. */
  :: else ->
     assert(freed && !ANY_KNOWN && !pinned);
     assert(AT_REST(0) && AT_REST(1) && AT_REST(2) && AT_REST(3) && AT_REST(4) && AT_REST(5) && AT_REST(6));
     break
  od
}
