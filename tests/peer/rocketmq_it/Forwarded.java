package mqlake.it;

import java.util.function.BiConsumer;
import javassist.util.proxy.Proxy;
import javassist.util.proxy.ProxyFactory;
import org.apache.rocketmq.common.MixAll;

/** Objects of settings whose setters also change the setting of a process elsewhere. */
final class Forwarded {
    private Forwarded() {
    }

    /** Returns an object with these initial values; `change` gets the name and the value of what is set. */
    static <T> T settings(Class<T> type, T initial, BiConsumer<String, Object> change) {
        ProxyFactory factory = new ProxyFactory();
        factory.setSuperclass(type);
        factory.setFilter(method -> method.getName().startsWith("set") && method.getParameterCount() == 1);
        try {
            Object settings = factory.create(new Class<?>[0], new Object[0]);
            MixAll.properties2Object(MixAll.object2Properties(initial), settings);
            ((Proxy) settings).setHandler((self, method, proceed, arguments) -> {
                String name = method.getName().substring("set".length());
                change.accept(Character.toLowerCase(name.charAt(0)) + name.substring(1), arguments[0]);
                return proceed.invoke(self, arguments);
            });
            return type.cast(settings);
        } catch (ReflectiveOperationException thrown) {
            throw new IllegalStateException(thrown);
        }
    }
}
