# SYNTAX TEST "source.python" "a cell of the other language below a magic for the time"

%%time
%%sac
#<----- keyword.control.directive.sac
double[*] inc(double[*] a) { return { iv -> a[iv] + 1.0 }; }
#<------ meta.embedded.block.sac storage.type.sac
#         ^^^ meta.embedded.block.sac entity.name.function.sac
